"""One file per schema version, numbered."""
