"""Kernels of the CPU device beside NumPy, torch, and Mesa's CPU driver, in work per second of processor time.

    python -m benchmarks.cpu [--only NAMES] [--seconds S] [--json FILE] [--threads N] [--lavapipe] [--scaling]

Each case runs a Triton kernel on CPU tensors, turn about with the same computation in torch and, where there is one, in
NumPy, with one thread each. The ratio is that to the better of the two, by processor time, because machines without a
GPU are busy; the column ``clock`` is the same by the clock. The last column is the share of what this machine can do:
of its measured bandwidth, or of its measured rate of multiply-adds. ``--lavapipe`` runs the kernels on Mesa's driver,
too, in a process of its own, and ``--scaling`` with one thread and with two, which needs two processors that do
nothing else: beside the kernels torch, and what the machine itself allows, copies of 64 MiB and multiply-adds in
registers, since two processors may share a core or wait for one memory. Sums, copies and random numbers are written to
the same memory by all. The exit status is 1 where a result is wrong.
"""
