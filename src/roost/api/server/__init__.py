"""The HTTP server. Read ``listener`` first.

``listener``: listening sockets, and a server with a graceful stop.
``connection``: an HTTP/1.1 connection with limits.
``connection_limit``: counts the open connections of a process.
``mount``: several APIs on one port.
``supervisor``: keeps worker processes alive.
``tls``: certificates of the server and of clients.
``free_memory``: reuse of freed memory pages.
"""
