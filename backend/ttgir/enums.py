"""Enums of the Triton, TritonGPU and arith dialects: keyword to number, as in their .td files."""
from __future__ import annotations

ENUMS: dict[str, dict[str, int]] = {
    "MemSemantic": {"relaxed": 1, "acquire": 2, "release": 3, "acq_rel": 4},
    "MemSyncScope": {"gpu": 1, "cta": 2, "sys": 3},
    "RMWOp": {"and": 1, "or": 2, "xor": 3, "add": 4, "fadd": 5, "max": 6, "min": 7, "umax": 8, "umin": 9, "exch": 10},
    "DescriptorReduceKind": {"add": 1, "min": 2, "max": 3, "inc": 4, "dec": 5, "and": 6, "or": 7, "xor": 8},
    "PaddingOption": {"zero": 1, "nan": 2},
    "ProgramIDDim": {"x": 0, "y": 1, "z": 2},
    "RoundingMode": {"rtz": 0, "rtne": 1},
    "PropagateNan": {"none": 0, "all": 0xFFFF},
    "InputPrecision": {"tf32": 0, "tf32x3": 1, "ieee": 2, "bf16x3": 3, "bf16x6": 4},
    "ScaleDotElemType": {"e4m3": 0, "e5m2": 1, "e2m3": 2, "e3m2": 3, "e2m1": 4, "bf16": 5, "fp16": 6},
    "AddrSpace": {"none": 0, "local": 1, "global_read": 2, "global_write": 4, "tensor_read": 8, "tensor_write": 16,
                  "all": 31},
    "CmpIPredicate": {"eq": 0, "ne": 1, "slt": 2, "sle": 3, "sgt": 4, "sge": 5, "ult": 6, "ule": 7, "ugt": 8, "uge": 9},
    "CmpFPredicate": {"false": 0, "oeq": 1, "ogt": 2, "oge": 3, "olt": 4, "ole": 5, "one": 6, "ord": 7, "ueq": 8,
                      "ugt": 9, "uge": 10, "ult": 11, "ule": 12, "une": 13, "uno": 14, "true": 15},
    "ArithRoundingMode": {"to_nearest_even": 0, "downward": 1, "upward": 2, "toward_zero": 3, "to_nearest_away": 4},
}
