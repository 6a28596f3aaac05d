"""The fake driver: guests in memory or files, for tests and simulation."""
