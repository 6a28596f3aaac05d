"""Workloads from files and seeds, one module per format; ``formats`` recognises the files of a trace."""
