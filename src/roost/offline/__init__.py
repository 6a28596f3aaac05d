"""Decisions from documents, without a database: read, load, decide, say; and the document of a live fleet."""
