"""The parts of a step common to all kinds of operations."""
