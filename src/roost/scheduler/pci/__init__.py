"""PCI devices: what requests want of them, and whether a host's pools have it."""
