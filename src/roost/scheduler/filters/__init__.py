"""One filter per file; the file's name is the filter's name."""
