"""Instances on memory nodes: what is asked for, and which of many hosts have it."""
