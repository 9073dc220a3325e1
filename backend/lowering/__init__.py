"""TTGIR operations to SPIR-V: a registry of rules, one file per family of operations.

A rule inspects only the operation it lowers. What must be decided over several operations is decided in ``layouts/``
and ``analysis/`` before anything is emitted.
"""
