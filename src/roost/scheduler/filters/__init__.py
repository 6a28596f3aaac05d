"""Filters: one file per filter, with the filter's name."""
