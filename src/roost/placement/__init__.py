"""What is free: providers, inventories, labels, candidates, claims."""
