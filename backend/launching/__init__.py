"""What Triton's runtime asks of a backend when it launches a kernel. ``runtime/``, below this, works without Triton.

``device_utils``: loading kernels; ``launcher``: the callables that launch them; ``signatures``: the arguments that a
kernel's source has; ``scratch_memory``: memory from Triton's allocator; ``split_grid``: grids past the device's limit;
``repeated_launches``: launches like earlier ones; ``compile_only``: kernels that are compiled and not run;
``benchmarking``: timing without the host's part of a launch.
"""
