"""The verbs of `python3 -m tools`, one file each: `LEVEL`, `run(project, arguments) -> exit status`."""
