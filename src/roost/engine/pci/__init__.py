"""Free PCI devices of a host: whether they are those that an instance wants."""
