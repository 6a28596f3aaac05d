"""Settings: one struct a section."""
