"""What all parts of a simulation share: time, chance, trouble, and what lasts when a process dies."""
