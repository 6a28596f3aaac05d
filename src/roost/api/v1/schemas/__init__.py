"""Bodies of ``/v1``, one file a resource."""
