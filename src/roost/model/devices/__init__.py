"""NUMA cells and PCI devices.

``numa``: NUMA cells of a host.
``topology``: NUMA cells of an instance, and their placement.
``pci``: PCI aliases and device requests.
``device_names``: resource classes and traits of PCI devices.
"""
