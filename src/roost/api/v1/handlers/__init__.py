"""What answers: one file a resource."""
