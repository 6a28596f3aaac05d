"""Memory of the server: reuse of freed pages."""

import ctypes
import sys

# Parameters of ``mallopt`` in glibc.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
# Maximum number of free bytes that the process keeps, and maximum size of a value in this memory.
_FREE_MAX_BYTES = 128 * 1024 * 1024
_VALUE_MAX_BYTES = 32 * 1024 * 1024  # the maximum of glibc


def keep_pages() -> None:
    """Reuse the memory of large responses, if the C library has ``mallopt``.

    By default, the C library returns this memory to the system after each response, and the system must zero the pages
    of the next response.
    """
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_TRIM_THRESHOLD, _FREE_MAX_BYTES)
        mallopt(_M_MMAP_THRESHOLD, _VALUE_MAX_BYTES)
