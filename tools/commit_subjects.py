"""Whether the subjects of commits are ``room: what changed``, and short (CONTRIBUTING.md).

    python3 -m tools.commit_subjects [RANGE]

RANGE is as `git log` takes it; the last commit if there is none. This project's workflow runs it. `tools check` and
`tools test` do not, since they serve checkouts whose commits have a form of their own.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence

#: `git log --oneline` shows it whole in 80 columns.
LONGEST = 72


def fault_of(subject: str) -> str:
    """What is wrong with a commit's first line; empty if nothing is."""
    if not re.match(r"[\w/. ,-]+: \S", subject):
        return f"not `room: what changed`: {subject}"
    return f"{len(subject)} characters, {LONGEST} at most: {subject}" if len(subject) > LONGEST else ""


def main(arguments: Sequence[str]) -> int:
    """Prints what is wrong with each subject; 1 if something is."""
    command = ["git", "log", "--no-merges", "--format=%s", *(arguments or ["-1"])]
    subjects = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    found = list(filter(None, map(fault_of, subjects)))
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
