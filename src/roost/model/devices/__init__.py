"""Memory nodes and PCI devices."""
