"""Roost's own drivers, one file or folder each."""
