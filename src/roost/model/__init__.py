"""Nouns: frozen structs that can be written to JSON, and nothing that does I/O."""
