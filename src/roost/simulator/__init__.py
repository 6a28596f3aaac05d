"""The world in a box: workloads from traces and seeds, run through a scheduler, and what came of it."""
