"""The device ``spirv`` as torch sees it: its registration, tensors' memory, streams, and what runs on the CPU."""
