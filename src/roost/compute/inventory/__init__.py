"""The inventory of a host: provider trees, resource tracking, and reshapes."""
