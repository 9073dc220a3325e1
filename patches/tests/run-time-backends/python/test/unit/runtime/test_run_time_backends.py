import pytest
import triton
from triton.backends import backends
from triton.backends.compiler import BaseBackend, GPUTarget
from triton.backends.driver import DriverBase
from triton.compiler import make_backend


def register_backend(*args):
    return triton.backends.register_backend(*args)


def get_backend(name):
    return triton.backends.get_backend(name)


def _nothing(self, *args):
    return {}


class Compiler(BaseBackend):
    supports_target = staticmethod(lambda target: target.backend == "made_here")
    hash = parse_options = add_stages = load_dialects = get_module_map = _nothing
    get_codegen_implementation = pack_metadata = _nothing


class Driver(DriverBase):
    is_active = classmethod(lambda cls: True)
    map_python_to_cpp_type = get_active_torch_device = get_benchmarker = _nothing

    def get_current_target(self):
        return GPUTarget("made_here", "any", 1)


@pytest.fixture(autouse=True)
def as_before(monkeypatch):
    before = dict(backends)
    monkeypatch.setattr(triton.runtime.driver, "_default", None)
    monkeypatch.setattr(triton.runtime.driver, "_active", None)
    yield
    backends.clear()
    backends.update(before)


def test_a_registered_backend_is_found_by_name_and_by_target(monkeypatch):
    made = register_backend("made_here", Compiler, Driver)
    assert made is get_backend("made_here") is backends["made_here"]
    assert (made.compiler, made.driver) == (Compiler, Driver)
    assert isinstance(make_backend(GPUTarget("made_here", "any", 1)), Compiler)
    monkeypatch.setenv("TRITON_DEFAULT_BACKEND", "made_here")
    assert isinstance(triton.runtime.driver.active, Driver)


def test_a_name_is_taken_once():
    register_backend("made_here", Compiler, Driver)
    for name in backends:
        with pytest.raises(ValueError, match=f"there is a backend '{name}' already, .*: choose another name"):
            register_backend(name, Compiler, Driver)
    assert get_backend("made_here").compiler is Compiler


@pytest.mark.parametrize("name", ["", "made here", "made-here", "1"])
def test_a_name_is_an_identifier(name):
    with pytest.raises(ValueError, match="a backend's name is a Python identifier"):
        register_backend(name, Compiler, Driver)


class NoStages(Compiler):
    add_stages = BaseBackend.add_stages


class NoMetadata(BaseBackend):
    supports_target = staticmethod(lambda target: False)
    hash = parse_options = add_stages = load_dialects = get_module_map = _nothing


class NoTarget(Driver):
    get_current_target = DriverBase.get_current_target


class ActiveObject(Driver):
    def is_active(self):
        return True


class TargetOfAnObject(Compiler):
    def supports_target(self, target):
        return False


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((1, Compiler, Driver), "a backend's name is a str, not an object of int"),
        (
            ("a", Driver, Compiler),
            "its compiler must be a subclass of triton.backends.compiler.BaseBackend, not the class Driver",
        ),
        (
            ("a", Compiler, object()),
            "its driver must be a subclass of triton.backends.driver.DriverBase, not an object of object",
        ),
        (("a", Compiler, Driver()), "not an object of Driver: pass the class Driver, not an object of it"),
        (("a", NoStages, Driver), r"its compiler NoStages lacks add_stages\(\)"),
        (("a", NoMetadata, Driver), r"lacks get_codegen_implementation\(\), pack_metadata\(\)"),
        (("a", Compiler, NoTarget), r"its driver NoTarget lacks get_current_target\(\)"),
        (("a", Compiler, ActiveObject), r"ActiveObject.is_active\(\) must be a class method or a static method"),
        (("a", TargetOfAnObject, Driver), r"TargetOfAnObject.supports_target\(\) must be a class method or a static"),
    ],
)
def test_what_is_no_backend_is_refused(arguments, message):
    with pytest.raises(TypeError, match=message):
        register_backend(*arguments)
    assert "a" not in backends


def test_an_unknown_backend_is_an_error_that_names_the_others():
    register_backend("made_here", Compiler, Driver)
    with pytest.raises(KeyError, match="there is no backend 'nope'; there are: .*made_here"):
        get_backend("nope")
