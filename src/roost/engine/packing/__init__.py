"""The value of free resources for later requests.

``cutting_stock``: prices of pieces of devices.
``device_value``: the loss of a host's free devices, and its change by an instance.
``free_devices``: the free amounts of hosts with devices, in plain numbers, updated host by host.
``room_value``: the loss of room for usual sizes of instances on a host.
``single_hosts``: the same for a few hosts, in plain numbers.
"""
