"""What a release was made of: an in-toto statement with SLSA's provenance (v1), as JSON, not signed."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..project import Project
from .plugins import Plugin

_STATEMENT, _PREDICATE = "https://in-toto.io/Statement/v1", "https://slsa.dev/provenance/v1"
#: How it is built: SLSA asks for a name of that. docs/internals/building.md describes it.
_BUILD = "urn:triton-spirv:release:1"


def statement(project: Project, plugins: list[Plugin], wheels: Mapping[str, str]) -> str:
    """The statement about wheels, by file name their sha256: the commits and upstream's wheels that they are made of.

    Of upstream's wheels it names all of the lock; each wheel here holds the one for its interpreter and machine.
    """
    lock = project.lock()
    made_of = [_commit(folder) for folder in dict.fromkeys([project.root, *(plugin.folder for plugin in plugins)])]
    made_of.append({"uri": f"git+{lock.url}@{lock.ref}", "digest": {"gitCommit": lock.commit}})
    made_of += [{"name": wheel.file, "digest": {"sha256": wheel.sha256}} for wheel in lock.wheels]
    definition = {
        "buildType": _BUILD,
        "externalParameters": {"version": str(project.settings()["version"])},
        "resolvedDependencies": [one for one in made_of if one],
    }
    subject = [{"name": name, "digest": {"sha256": digest}} for name, digest in sorted(wheels.items())]
    predicate = {"buildDefinition": definition, "runDetails": {"builder": {"id": _builder()}}}
    document = {"_type": _STATEMENT, "subject": subject, "predicateType": _PREDICATE, "predicate": predicate}
    return json.dumps(document, indent=1) + "\n"


def _commit(folder: Path) -> dict[str, Any]:
    """The commit that is checked out in a folder, and whether something differs from it; {} in no git repository."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(folder), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()

    commit = git("rev-parse", "HEAD")
    changed = bool(git("status", "--porcelain", "--", "."))
    return {"name": folder.name, "digest": {"gitCommit": commit}, "annotations": {"changed": changed}} if commit else {}


def _builder() -> str:
    """The run of GitHub's workflow that this is part of, or a name for a build elsewhere."""
    words = [os.environ.get(f"GITHUB_{name}", "") for name in ("SERVER_URL", "REPOSITORY", "RUN_ID")]
    return "{}/{}/actions/runs/{}".format(*words) if all(words) else "urn:triton-spirv:by-hand"
