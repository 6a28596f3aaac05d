"""Nova's objects in messages, as JSON."""
