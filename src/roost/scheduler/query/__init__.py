"""The query to Placement, built from flavor, image, request and settings. Read ``build`` first."""
