"""A module for a patch to change."""

STATE = "old"
