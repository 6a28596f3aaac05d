"""A shape: the compiled pipeline of similar requests, its verdicts, ranking and evidence."""
