"""Functions of Python that the native module calls: those that may end a thread are made to outlive it."""

import re
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile
from triton.backends.spirv.runtime.native_module import native_part

SOURCE = Path(__file__).parents[2] / "backend/native/python_calls.cpp"

#: Functions that neither take Python's lock nor run Python, for what they are passed here.
HARMLESS = re.compile(
    r"""
    Py(Buffer_IsContiguous|Callable_Check|CMethod_New|EncodedString|Index_Check|Type_\w+|ModuleDef_Init|Weakref_NewRef)
    | Py(ByteArray|Bytes|Capsule|Frame|List|Mem|StaticMethod|InstanceMethod|Tuple|Unicode|Thread_tss)_\w+
    | PyDict_(Items|New|Next) | PyNumber_Check | PySequence_Check | PySet_Contains
    | PyErr_(ExceptionMatches|Fetch|Format|GivenExceptionMatches|NewExceptionWithDoc|Occurred|SetString)
    | PyException_Set\w+ | PyEval_(GetBuiltins|GetFrame|SaveThread) | PyFloat_FromDouble
    | PyGILState_(GetThisThreadState|Release) | PyInterpreterState_\w+ | PyModule_(AddObject|NewObject)
    | PyLong_(From\w+|AsUnsignedLong|AsUnsignedLongLong) | PyThreadState_(DeleteCurrent|New)
    # dict(an object), which is called for keywords that are none: pybind11's, with arguments that cannot be passed on
    | PyObject_CallFunctionObjArgs
    | PyObject_(Free|GC_UnTrack|GenericGetDict|GenericSetDict|Malloc)
    | Py_(GetVersion|IsInitialized|Version)
    | _PyObject_(GetDictPtr|New) | _PyThreadState_UncheckedGet | _PyType_Lookup
    """,
    re.VERBOSE,
)


@pytest.mark.parametrize("part", ["_native", "_native_torch"])
def test_each_call_is_outlived_or_harmless(part: str) -> None:
    outlived = set(re.findall(r"^OUTLIVED\([^,]+, (\w+),", SOURCE.read_text(encoding="utf-8"), re.MULTILINE))
    assert len(outlived) > 40
    with open(native_part(part).__file__, "rb") as file:
        table: Any = ELFFile(file).get_section_by_name(".dynsym")
        symbols = [one for one in table.iter_symbols() if one["st_shndx"] == "SHN_UNDEF"]
        called = {one.name for one in symbols if re.match("_?Py", one.name)}
    data = {name for name in called if re.search("_Type$|^PyExc_|Struct$", name)}
    others = {name for name in called - outlived - data if not HARMLESS.fullmatch(name)}
    assert called
    assert not others, f"neither in {SOURCE.name} nor known to be harmless: {sorted(others)}"
