"""Candidate search: which providers can serve a query together. Read ``search`` first."""
