"""The acts of a sequence, by subject; each act yields requests and learns from the answers."""
