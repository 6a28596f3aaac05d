"""Bodies and queries of ``/v1``, one file per resource."""
