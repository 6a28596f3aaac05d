"""The state in columns: growing arrays, and ``apply``, the only module with write access."""
