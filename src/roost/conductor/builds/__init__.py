"""Building instances: claims, alternates and failures."""
