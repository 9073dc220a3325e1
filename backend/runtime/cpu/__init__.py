"""The CPU as a device: kernels as machine code in this process."""
