"""Import of all data of an upstream Placement, with a comparison afterwards."""
