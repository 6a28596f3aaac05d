"""Moving instances: targets, replies, timeouts and endings."""
