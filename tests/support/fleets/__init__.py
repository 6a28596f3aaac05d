"""Fleets, requests and states, built or drawn."""
