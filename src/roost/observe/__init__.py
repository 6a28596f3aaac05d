"""Evidence out: what a server tells about itself while it runs."""
