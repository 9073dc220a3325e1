"""SPIR-V itself: opcodes, types, constants, instructions, structured control flow, binary encoding.

This package knows the SPIR-V 1.6 specification and nothing of Triton. Section numbers in docstrings refer to the
unified specification.
"""
