"""Parts that several filters and weighers share."""
