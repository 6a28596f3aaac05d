"""The schedulers of Nova's first releases, and the service around them."""
