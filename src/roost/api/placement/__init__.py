"""The Placement API, 1.0 to 1.39, over a thread that owns the columns."""
