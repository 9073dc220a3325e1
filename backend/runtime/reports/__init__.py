"""Reading what kernels report: a file for each kind, a row of ``kinds.py``, and the launchers that ask them."""
