"""State that all parts of a simulation share: time, chance, faults, and data that outlives a process."""
