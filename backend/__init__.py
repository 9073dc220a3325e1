"""Triton's SPIR-V backend. ``import triton`` imports this file: it imports nothing."""
