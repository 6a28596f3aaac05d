"""What Nova has in ``nova.scheduler``."""
