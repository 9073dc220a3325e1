"""Runs upstream's own tests on a device of this backend: `python3 -m tools upstream-tests`."""
