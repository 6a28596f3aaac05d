"""Sums over the fleet for monitoring: ``fleet_sums``."""
