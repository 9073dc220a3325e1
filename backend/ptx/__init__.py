"""Inline assembly of NVIDIA's GPUs as text: what ``tl.inline_asm_elementwise`` takes, read but not yet emitted.

Source of every rule: NVIDIA, "PTX ISA", chapters 4 (syntax), 5 (state spaces and types) and 9 (instructions).
"""
