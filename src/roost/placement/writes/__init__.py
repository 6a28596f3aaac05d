"""What each act of the Placement API writes, planned on the columns."""
