"""Attacks on a live server, each with what other clients see meanwhile."""
