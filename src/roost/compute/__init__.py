"""The compute service of a host: agent, drivers, inventory and report client.

``agent``: the host agent: state machine, journal, threads.
``drivers``: the fake and the libvirt driver.
``inventory``: inventories and use of a host's nodes.
``providers``: provider trees and allocations in memory.
``report``: the client of a Placement.
``driver``: the interface and the loading of drivers.
``driver_values``: checks of the values that drivers return.
"""
