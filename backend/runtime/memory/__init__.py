"""Memory that kernels use: parts of the device's, and the host's for devices that cannot read it in place."""
