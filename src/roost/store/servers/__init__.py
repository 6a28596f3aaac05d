"""The common part of the stores on database servers.

``foreign_tables``: the refusal of a database with tables of another program.
``lost_hosts``: losses and silent hosts, which connections share.
``server_link``: repeated attempts to connect, and the history of a database.
``server_store``: the stores, as far as all servers have them in common.
``stored_size``: the size of all evidence, measured beside the thread that decides.
``url_ports``: ports in the URL of a server.
"""
