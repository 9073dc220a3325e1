"""Measurements, each a script that prints a ratio against something real in the same run."""
