"""What the Placement API says on the wire: its microversions, its versions document, answers of another server."""
