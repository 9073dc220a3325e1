"""Build and upkeep commands of this repository: `python3 -m tools <verb>`."""
