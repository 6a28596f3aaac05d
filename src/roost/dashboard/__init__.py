"""The dashboard in a browser, below ``/ui``. It reads the server by the public API alone.

``dashboard_site``: the application that serves the page and its files.
``static_files``: the files of the page, in memory, with their headers.

The folder ``static`` has the page itself: modules, styles and libraries.
"""
