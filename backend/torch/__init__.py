"""The device ``spirv`` in torch: the device itself, its operations, and what torch's compiler asks of it."""
