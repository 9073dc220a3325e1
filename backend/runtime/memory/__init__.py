"""Memory that kernels use: the device's own, and the host's for devices that cannot read it in place."""
