"""Simulation: workloads from traces and seeds, replays through a scheduler, and reports."""
