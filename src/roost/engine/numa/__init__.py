"""Instances on the memory nodes of a host: which of their cells on which, and what is in use then."""
