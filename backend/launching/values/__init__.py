"""What TRITON_SPIRV_CHECK_VALUES does to a launch: run it, run the reference from the same memory, compare, and find
what changes a value."""
