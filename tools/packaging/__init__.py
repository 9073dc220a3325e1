"""What setup.py does: the patched upstream tree and the plugins, as an importable tree or as a wheel."""
