"""Ranking: scores, top-k selection with an optimality bound, incremental updates."""
