"""Launches: where arguments lie, the addresses of their memory, and graphs of launches."""
