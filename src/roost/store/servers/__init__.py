"""The common part of the stores on database servers.

``foreign_tables``: the refusal of a database with tables of another program.
``evidence_size``: the size of all evidence, measured in a background thread.
``lost_hosts``: losses and silent hosts, which connections share.
``server_link``: repeated attempts to connect, and the history of a database.
``server_store``: the stores, as far as all servers have them in common.
``url_ports``: ports in the URL of a server.
"""
