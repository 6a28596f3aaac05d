"""PCI devices: what requests want of them."""
