"""One file a resource: what is asked of it is read, passed down, and answered."""
