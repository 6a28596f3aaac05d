"""Sums over the fleet for monitoring: ``fleet_sums``. The used share of each host: ``host_shares``."""
