"""Decisions about a whole kernel before anything is emitted: how many subgroups, and what fits in shared memory."""
