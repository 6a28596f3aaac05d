"""Files that may not be written, though tests run as root."""

import os
from contextlib import contextmanager


@contextmanager
def somebody():
    """Root may write everything, so as root the test becomes somebody else."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
