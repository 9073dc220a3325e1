"""What users look at: the state of an installation, and what became of a kernel."""
