"""Instances on memory nodes: what is asked for, and whether a host has it."""
