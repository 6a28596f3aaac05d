"""Candidate search: sets of providers that can serve a query together. Read ``search`` first."""
