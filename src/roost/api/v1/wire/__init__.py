"""Reading requests and writing answers of ``/v1``."""
