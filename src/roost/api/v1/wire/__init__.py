"""Decoding of requests and encoding of answers of ``/v1``.

``decode_body``: strict decoding of bodies and queries.
``list_fields``: selected fields of lists, and patterns for names.
``pages``: pages of lists.
``problem_details``: errors as RFC 9457 problem details.
``problem_types``: stable names of errors.
"""
