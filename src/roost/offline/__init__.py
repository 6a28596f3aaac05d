"""Decisions from documents, without a database: read, load, decide; and the document of a live fleet."""
