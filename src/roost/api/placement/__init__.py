"""The Placement API on the thread that owns the columns."""
