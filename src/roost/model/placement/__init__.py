"""The wire format of the Placement API.

``microversions``: microversions, named by their features.
``placement_api``: responses and error codes.
``remote``: candidates from a remote Placement.
"""
