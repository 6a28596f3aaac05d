"""NUMA cells and PCI devices."""
