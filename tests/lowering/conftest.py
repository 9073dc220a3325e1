"""FileCheck, which upstream's wheel brings along."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
import triton

FILECHECK = Path(triton.__file__).parent / "FileCheck"


@pytest.fixture
def filecheck() -> Callable[[str, str], None]:
    """``filecheck(text, patterns)``: fails with FileCheck's own report where the patterns do not match."""

    def check(text: str, patterns: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            pattern_file, text_file = Path(folder) / "patterns", Path(folder) / "text"
            pattern_file.write_text(patterns)
            text_file.write_text(text)
            result = subprocess.run(
                [FILECHECK, pattern_file, "--input-file", text_file, "--dump-input-context=20"],
                capture_output=True,
                text=True,
                check=False,
            )
        assert result.returncode == 0, result.stderr

    return check
