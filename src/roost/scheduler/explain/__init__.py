"""Explanations: which rule refuses which hosts, what is nearest, and what would fit."""
