"""The Placement API, versions 1.0 to 1.39, on the thread that owns the columns."""
