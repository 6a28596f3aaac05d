"""The choice. Read ``select`` first."""
