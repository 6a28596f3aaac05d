"""Accepting operations: validation, and the commit after which an operation will be worked on."""
