"""Decisions and their evidence, as stored and as explained."""
