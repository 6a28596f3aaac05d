"""Drivers, and the parts that they share.

``fake``: a driver that only records guests.
``libvirt``: a driver for libvirt.
``pci_choice``: PCI devices of a guest.
``pinned_cpus``: the move of dedicated processors from VCPU to PCPU.
"""
