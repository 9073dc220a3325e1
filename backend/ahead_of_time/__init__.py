"""Compiling a kernel in a file to a module and the JSON of its ABI: ``triton-spirv compile``. Loading is
runtime/compiled/ahead_of_time.py, which needs no Triton; here only kernel_source.py and build.py do."""
