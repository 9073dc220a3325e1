"""What pytest loads is pytest_hooks.py, not this file: Triton imports all packages of a backend, pytest or not."""
