"""Rewrites of TTGIR, on the objects of ``ttgir/``: ``table.py`` says which, in what order and when.

This package knows layouts and analyses. It knows nothing of SPIR-V.
"""
