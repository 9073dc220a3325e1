"""What no query tells of a device: kernels that run once per driver measure it."""
