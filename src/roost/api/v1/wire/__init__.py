"""Decoding of requests and encoding of answers of ``/v1``."""
