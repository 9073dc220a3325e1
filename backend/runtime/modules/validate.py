"""``TRITON_SPIRV_VALIDATE=1``: every module that is emitted or loaded goes through spirv-val."""

from __future__ import annotations

import hashlib
import itertools
import logging
import shutil
import subprocess

from ...settings import VALIDATE
from ...spirv import opcodes as op
from ...spirv.decode import instruction_words
from ...spirv.opcodes import Capability_
from ...system import INSTALL_SPIRV_TOOLS
from .saved_modules import save_module

_log = logging.getLogger(__name__)

#: Digests of the modules that passed: what was checked when it was compiled is not checked again when it is loaded.
_passed: set[bytes] = set()


class InvalidModule(Exception):
    """spirv-val rejects a module; the message has its words and the path of the saved module."""


#: Capabilities that spirv-val of 2023 does not know: CooperativeMatrixKHR and bfloat16's.
_RECENT = (6022, 5116, 5118)


def _unknown_to_tool(said: str) -> bool:
    return any(f"Invalid capability operand: {number}" in said for number in _RECENT)


def environment(spirv: bytes) -> str:
    """What a module is checked for, as spirv-val calls it: Vulkan, but SPIR-V alone where it calls functions of the
    device, as no Vulkan module does."""
    capabilities = itertools.takewhile(lambda one: one[0] == op.Capability, instruction_words(spirv))
    return "spv1.6" if any(words[0] == Capability_.Linkage for _, words in capabilities) else "vulkan1.3"


def validate_module(spirv: bytes, name: str) -> None:
    """Checks a module where validation is asked for. Raises InvalidModule, and FileNotFoundError without spirv-val."""
    if not VALIDATE.get():
        return
    digest = hashlib.sha256(spirv).digest()
    if digest in _passed:
        return
    tool = shutil.which("spirv-val")
    if tool is None:
        raise FileNotFoundError(f"{VALIDATE.name} is set but spirv-val is not on the PATH: {INSTALL_SPIRV_TOOLS}")
    command = [tool, "--target-env", environment(spirv), "-"]
    result = subprocess.run(command, input=spirv, capture_output=True, check=False)
    if result.returncode and _unknown_to_tool(result.stderr.decode()):
        _log.warning("spirv-val is too old for cooperative matrices: kernel '%s' was not validated", name)
        return
    if result.returncode:
        path = save_module(name, spirv)
        saved = f", saved as {path}" if path else ""
        raise InvalidModule(f"spirv-val rejects the module of kernel '{name}'{saved}: {result.stderr.decode().strip()}")
    _passed.add(digest)
