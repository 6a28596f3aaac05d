"""The value of free resources for later requests.

``cutting_stock``: prices of pieces of devices.
``device_value``: the loss of a host's free devices, and its change by an instance.
``single_hosts``: the same for a few hosts, in plain numbers.
"""
