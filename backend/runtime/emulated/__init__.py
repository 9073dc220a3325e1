"""Devices of other vendors, emulated on the processor: slow, and strict about what kernels access."""
