"""The parts of a step that all kinds of operations share."""
