"""Arithmetic over columns: pure, deterministic, and the only owner of writable arrays. Read ``columns.state`` first.

``columns``: the state in arrays, and its changes.
``fill``: a state from the tables of a database.
``candidates``: the search for sets of providers.
``feasibility``: which hosts can hold a request, with reasons.
``ranking``: scores, and the choice of the best hosts.
``numa``: instance cells on NUMA cells.
``pci``: free PCI devices, and requests for them.
``packing``: the value of free resources for later requests.
``survey``: sums over the fleet for monitoring, in any thread.
"""
