"""Everything of torch's compiler that torch keeps private and this backend touches: ``hooks.HOOKS`` names each, and
nothing outside of this package touches more.

This file imports nothing: Triton imports every package of a backend when it makes the key of its cache, and torch must
not be imported for that (tests/unit/test_import_cost.py).
"""
