"""The query to Placement, built from flavor, image and settings. Read ``build`` first."""
