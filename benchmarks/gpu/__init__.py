"""The same kernels through this backend and through upstream's CUDA backend, on one GPU, in one run.

Each backend runs in its own process, one after the other, with data in the GPU's memory: device buffers of the
SPIR-V backend's runtime, and CUDA tensors of torch. Every result is checked on the host in float64 before it is timed;
times are medians of triton.testing.do_bench, which takes the device's own timestamps and clears the cache before each
call. If a kernel has several configurations, each backend's fastest counts, and the fastest of each number of warps
is shown under it; what does not fit a device is left out. Launches are measured in several processes of each backend,
turn about, and the median process counts. Prints a table with the ratio of the rates (CUDA = 1), and writes JSON and a
chart where asked to.

    python -m benchmarks.gpu [--only NAME[,NAME]] [--backends spirv,nvidia] [--json FILE] [--chart FILE] [--seconds N]
    python -m benchmarks.gpu --check [--only …] [--backends …]: no times, the error of every configuration
    python -m benchmarks.gpu --check --small --backends spirv: one small configuration of each, for any device

``cases.py`` has what a case is; a family of kernels has a file: ``rows.py``, ``products.py``, ``attention.py``,
``launches.py``. ``measuring.py`` runs cases, ``processes.py`` the backends, ``report.py`` prints.
"""
