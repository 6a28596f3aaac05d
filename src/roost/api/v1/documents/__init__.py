"""Documents of the server about its own API.

``openapi``: the OpenAPI document.
``tags``: its tags.
``open_documents``: all documents without authentication, also the page for browsers.
"""
