"""Facts about a device that no query reports, measured by kernels that run once per driver."""
