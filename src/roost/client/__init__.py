"""HTTP out: a Placement API that another server answers."""
