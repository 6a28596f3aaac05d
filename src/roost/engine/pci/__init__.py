"""Free PCI devices of a host, and the requests of an instance for them. Read ``pools`` first.

``pools``: allocation from pools of equal devices.
``device_usage``: free devices without those of guests.
``provider_match``: device requests and their providers.
"""
