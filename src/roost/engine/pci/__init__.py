"""Matching of a host's free PCI devices with the requests of an instance."""
