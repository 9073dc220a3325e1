"""PTX to SPIR-V: what a piece of inline assembly (backend/ptx/) does with its registers, one file per family."""
