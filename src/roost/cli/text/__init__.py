"""Text output: tables, progress, and the report of each command."""
