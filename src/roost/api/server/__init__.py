"""The HTTP server: connections, TLS, worker processes."""
