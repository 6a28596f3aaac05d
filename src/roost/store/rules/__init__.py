"""Rules that every store shares: tables, rows, commit rules and their footprint."""
