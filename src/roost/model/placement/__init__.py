"""The wire format of the Placement API: microversions, the versions document, and answers of another server."""
