"""Runs a program, and reaps its orphans at once, as the init process of a usual machine does.

Patroni leaves its PostgreSQL to the init process. In a container, that process may reap late, and until then Patroni
believes that PostgreSQL still runs: a switchover or restart takes a second longer.
"""

import ctypes
import os
import sys

_PR_SET_CHILD_SUBREAPER = 36


def main() -> None:
    """Run the program of the arguments, until it ends."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "this process cannot adopt orphans")
    program = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ)
    while os.wait()[0] != program:
        pass


if __name__ == "__main__":
    main()
