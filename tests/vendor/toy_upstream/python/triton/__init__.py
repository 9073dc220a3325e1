"""The toy upstream's package."""

__version__ = "1.0"
