"""Serve the reference with waitress, in one process; run by the Python that has it: ``serving_reference.py FOLDER``.

FOLDER holds ``placement.conf``. The address is printed once it listens; the end of the standard input ends it.
"""

import os
import sys
import threading
from pathlib import Path

THREADS = 8


def main(folder: str) -> None:
    """Serve until the standard input ends."""
    os.environ["OS_PLACEMENT_CONFIG_DIR"] = folder
    said = os.dup(1)
    with (Path(folder) / "log").open("ab") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    import waitress
    from placement.wsgi.api import application

    server = waitress.create_server(application, listen="127.0.0.1:0", threads=THREADS)
    threading.Thread(target=server.run, daemon=True).start()
    os.write(said, f"listening on http://127.0.0.1:{server.effective_port}\n".encode())
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
