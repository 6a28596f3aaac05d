"""Drop root privileges, so that file permissions apply in tests."""

import os
from contextlib import contextmanager


@contextmanager
def unprivileged_user():
    """Run the block as an unprivileged user if the tests run as root, because root may write every file."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
