"""Provider trees, and what is held of them."""
