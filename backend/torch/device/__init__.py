"""The device ``spirv`` as torch sees it: tensors' memory, streams, random numbers, and what runs on the CPU."""
