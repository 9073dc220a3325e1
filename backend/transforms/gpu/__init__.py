"""Rewrites for devices with matrix units, banked shared memory, or loads that run ahead: GPUs.

None runs for the CPU device, and nothing here knows of ``transforms/cpu/``.
"""
