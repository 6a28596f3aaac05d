"""Inventories and use of a host's nodes. Read ``resource_tracker`` first.

``resource_tracker``: updates of a node in Placement.
``reshape``: writes of a driver's provider tree.
``node_facts``: facts of a node for the server.
``host_use``: use of a host by its guests.
``admission``: memory nodes and devices for a guest.
``guest_limits``: limits of processors, memory and disk.
``single_resources``: named resources, such as persistent memory.
``device_providers``: PCI devices as providers.
``placement_devices``: PCI devices that Placement offers.
``guest_devices``: device addresses from the driver.
``inventory_ratios``: overcommit and reserves.
``provider_config``: inventories and traits from operators' files.
``monitors``: measurements of a host.
``stale_allocations``: allocations of deleted and moved instances.
"""
