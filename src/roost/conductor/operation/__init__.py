"""Parts of a step that all kinds of operations share."""
