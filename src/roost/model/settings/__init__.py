"""Settings: one struct per section."""
