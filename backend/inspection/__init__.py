"""What a user looks at: the state of an installation, and what became of a kernel."""
