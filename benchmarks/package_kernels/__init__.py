"""Kernels of public packages, compiled with signatures that are guessed from their source."""
