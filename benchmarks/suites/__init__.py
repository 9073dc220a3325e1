"""The tests that public kernel libraries carry, on CPU tensors."""
