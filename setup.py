"""build, bdist_wheel and `pip install .` of the Triton wheel with the SPIR-V backend inside.

`build` lays out an importable tree in build/lib, `bdist_wheel` writes a wheel to dist/; `bdist_wheel --source` builds
upstream from its submodule. TRITON_PLUGIN_DIRS, TRITON_WHEEL_NAME and TRITON_WHEEL_VERSION_SUFFIX are honoured as
upstream does. docs/internals/building.md tells more.
"""

from __future__ import annotations

import difflib
import sys
from pathlib import Path
from typing import Any, ClassVar

from setuptools import Command, setup

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))

from tools.errors import ToolError  # noqa: E402
from tools.project import Project  # noqa: E402

try:
    from tools.packaging import metadata, plugin_wheel, source_form, targets, wheel
except ImportError as error:
    package = {"git": "GitPython"}.get(error.name or "", error.name)
    raise SystemExit(f"error: the package {package} is missing: pip install -r requirements/build.txt") from None


class Build(Command):
    """The importable tree."""

    description = "lay out the patched Triton with its plugins as an importable tree"
    user_options: ClassVar[list[Any]] = [("build-lib=", None, "folder to put it in (default: build/lib)")]

    def initialize_options(self) -> None:
        self.build_lib: str | None = None

    def finalize_options(self) -> None:
        pass

    def run(self) -> None:
        wheel.build_tree(Project(ROOT), Path(self.build_lib).resolve() if self.build_lib else None)


class BdistWheel(Command):
    """The wheel."""

    description = "build the patched Triton wheel with its plugins"
    user_options: ClassVar[list[Any]] = [
        ("dist-dir=", "d", "folder to put the wheel in (default: dist)"),
        ("source", None, "build upstream from its submodule, not from its release wheel"),
        ("plugin-only", None, "the backend alone, for use with stock triton"),
        ("backends=", None, "leave out the backends that are not named (separated by commas)"),
        ("target=", None, "for another interpreter or machine, such as cp314t-aarch64 (see --list)"),
        ("release", None, "leave the digest out of the version; refused but for the commit of a release's tag"),
        ("strict", None, "refuse a plugin that imports what is not installed here"),
        ("list", None, "tell which wheels can be built here, and build none"),
    ]
    boolean_options: ClassVar[list[str]] = ["source", "plugin-only", "release", "strict", "list"]

    def initialize_options(self) -> None:
        self.dist_dir: str | None = None
        self.source = False
        self.plugin_only = False
        self.backends: str | None = None
        self.target: str | None = None
        self.release = False
        self.strict = False
        self.list = False

    def finalize_options(self) -> None:
        pass

    def run(self) -> None:
        project, folder = Project(ROOT), Path(self.dist_dir).resolve() if self.dist_dir else None
        names = tuple(filter(None, (name.strip() for name in (self.backends or "").split(","))))
        if self.backends is not None and not names:
            raise ToolError("--backends names none")
        if sum([self.source, self.plugin_only, bool(names)]) > 1 or (self.source and self.target):
            raise ToolError(
                "--source and --plugin-only go with none of --backends and each other, --source not with --target"
            )
        target = targets.parse(self.target) if self.target else None
        kind = metadata.Kind.RELEASE if self.release else metadata.Kind.BUILD
        if self.source and (self.release or self.strict):
            raise ToolError(f"--{'release' if self.release else 'strict'} does not go with --source")
        if self.list:
            print("\n".join(targets.table(project.lock(), wheel.check_plugins(project))))
        elif self.source:
            source_form.build_wheel(project, folder)
        elif self.plugin_only:
            plugin_wheel.build_wheel(project, folder, self.release, self.strict, target)
        else:
            wheel.build_wheel(project, folder, names, target, kind, self.strict)


# Commands that would leave half an installation → what does it whole.
_UNSUPPORTED = {
    "develop": "use `pip install -e .`",
    "editable_wheel": "use `pip install -e .`",
    "install": "use `pip install .`",
    "sdist": "there is no source distribution: build from a checkout",
}
_COMMANDS: dict[str, type[Command]] = {"build": Build, "bdist_wheel": BdistWheel}


def check_commands(arguments: list[str]) -> None:
    """Refuse, in one line, a command that there is not."""
    word = next((argument for argument in arguments if not argument.startswith("-")), "")
    if word in _UNSUPPORTED:
        raise ToolError(f"setup.py {word} is not supported: {_UNSUPPORTED[word]}")
    if word and word not in _COMMANDS:
        close = difflib.get_close_matches(word, _COMMANDS, 1)
        hint = f"did you mean {close[0]}?" if close else f"there are {' and '.join(_COMMANDS)}"
        raise ToolError(f"setup.py has no command {word}: {hint}")


def main() -> None:
    """Run the commands of the command line."""
    try:
        check_commands(sys.argv[1:])
        project = Project(ROOT)
        who = metadata.identity(project, wheel.check_plugins(project))
        setup(name=who.name, version=who.version, packages=[], py_modules=[], cmdclass=_COMMANDS)
    except ToolError as error:
        raise SystemExit(f"error: {error}") from None


if __name__ == "__main__":
    main()
