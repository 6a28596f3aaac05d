"""The fake driver: guests on paper, for tests and simulation."""
