"""Text for people: tables, progress, and each command's report."""
