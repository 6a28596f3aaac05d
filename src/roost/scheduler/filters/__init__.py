"""One filter a file; the name of the file is the name of the filter."""
