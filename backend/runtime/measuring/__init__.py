"""What no query tells of a device: kernels that run once a driver measure it."""
