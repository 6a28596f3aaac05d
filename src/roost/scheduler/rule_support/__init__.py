"""Parts shared by several filters and weighers."""
