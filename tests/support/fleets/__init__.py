"""Fleets, requests and engine states, fixed or random."""
