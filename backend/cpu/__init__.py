"""The CPU as a device: SPIR-V becomes LLVM IR of whole lanes, and machine code in this process."""
