"""One file a schema version, numbered."""
