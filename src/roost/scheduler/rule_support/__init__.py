"""Parts shared by several filters and weighers.

``aggregate_metadata``: aggregate metadata as masks and columns.
``demand_counts``: counts of requests for devices, and the value of free devices.
``expressions``: JSON expressions over hosts.
``host_metrics``: metrics reported by hosts.
``limits``: filters with an upper limit per host.
``number_filter``: filters by one number of the settings.
``operators``: operators of extra specs.
``overcommit``: filters by free capacity.
``ratios``: settings of the form name=number.
``scopes``: zones and aggregates as sets of hosts.
``size_counts``: counts of requests by size, and the sizes for which room is kept.
"""
