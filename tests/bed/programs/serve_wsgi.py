"""Serve an application of OpenStack over HTTP: ``serve_wsgi.py PORT MODULE``.

The Python of the bed's environment runs this script.
"""

import importlib
import sys

THREADS = 8


def main() -> None:
    """Serve the module's application on the loopback address."""
    port, module = int(sys.argv[1]), sys.argv[2]
    sys.argv = [module]  # The application reads its arguments.
    # The import patches the standard library, so it comes before all others.
    application = importlib.import_module(module).application
    waitress = importlib.import_module("waitress")
    waitress.serve(application, host="127.0.0.1", port=port, threads=THREADS, ident=None)


if __name__ == "__main__":
    main()
