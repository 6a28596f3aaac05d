"""Drivers that come with Roost, a file each with its parts beside it."""
