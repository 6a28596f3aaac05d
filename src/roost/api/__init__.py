"""The HTTP server: the Placement API and Roost's own API."""
