"""Workloads from files and seeds, one file a format; ``formats`` says which file is read by whom."""
