"""Neutron: the segments of the networks of a request, and remote-managed ports.

``neutron_options``: section ``[neutron]`` of nova.conf.
``neutron_api``: requests to Neutron.
``network_lookup``: the threads that send them, and the failures for conductors.
``network_segments``: adds the aggregates of segments to a request.
"""
