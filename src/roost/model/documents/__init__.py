"""Documents of commands: fleets, requests, answers.

``fleet_document``: a fleet, for ``roost decide``.
``request_document``: a request, for ``roost decide`` and the API.
``request_body``: converts a request to such a document.
``answer``: the answer of ``roost decide``.
``error_places``: paths of decoding errors in documents.
"""
