"""Free capacity: providers, inventories, labels, candidates and claims."""
