"""Decisions from documents, without a database: read, load, decide; and export of a live fleet."""
