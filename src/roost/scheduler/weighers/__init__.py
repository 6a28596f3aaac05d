"""Weighers: one file per weigher, with the weigher's name."""
