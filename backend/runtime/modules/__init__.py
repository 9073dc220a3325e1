"""SPIR-V modules that are loaded: what they say of themselves, their validation, and where refused ones are saved."""
