"""The connection of a command to a server.

``find_connection``: the server and token that the options, the environment or a profile select.
``profiles``: the file of profiles.
``token_source``: the token from an option, a file or the environment.
"""
