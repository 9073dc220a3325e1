"""Modules are taken by spirv-val, of the package spirv-tools."""

import shutil
import subprocess

import pytest
from triton.backends.spirv.runtime.modules.validate import environment

#: What spirv-val says that is older than cooperative matrices, or than bfloat16.
TOO_OLD = ("Invalid capability operand: 6022", "Invalid capability operand: 5116")


def validated(spirv: bytes, may_be_older: bool = False) -> bytes:
    """The module, if spirv-val takes it. ``may_be_older``: also if the tool does not know its matrices."""
    if shutil.which("spirv-val") is None:
        pytest.fail("spirv-val is missing; install it with: apt-get install spirv-tools")
    command = ["spirv-val", "--target-env", environment(spirv), "-"]
    said = subprocess.run(command, input=spirv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    text = said.stdout.decode()
    assert said.returncode == 0 or (may_be_older and any(part in text for part in TOO_OLD)), text
    return spirv
