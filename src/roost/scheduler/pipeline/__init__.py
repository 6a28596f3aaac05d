"""The decision pipeline: shapes, weighing, draws, and what an instance takes."""
