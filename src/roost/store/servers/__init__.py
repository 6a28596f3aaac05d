"""The common part of the stores on database servers.

``server_link``: repeated attempts to connect, and the history of a database.
``url_ports``: ports in the URL of a server.
"""
