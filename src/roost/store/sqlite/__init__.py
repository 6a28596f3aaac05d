"""The embedded store: one SQLite file and one serving process."""
