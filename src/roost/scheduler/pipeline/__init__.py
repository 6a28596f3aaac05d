"""The decision pipeline: shapes, scores, random draws, and the claims of instances."""
