"""One weigher per file; the file's name is the weigher's name."""
