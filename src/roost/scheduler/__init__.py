"""Host selection. Read ``select`` first."""
