"""Provider trees, and the allocations on them."""
