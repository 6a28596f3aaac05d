"""The writes of each act of the Placement API, planned on the columns."""
