"""The value of free resources for later requests.

``cutting_stock``: prices of sizes that are cut from devices.
``device_value``: the loss of a host's free devices, and its change by an instance.
"""
