"""How a server's memory is got and given back."""

import ctypes
import sys

# Of ``mallopt`` in the C library of GNU.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
# What is free stays with the process up to so much, and values up to so large come out of it.
_FREE_MAX_BYTES = 128 * 1024 * 1024
_VALUE_MAX_BYTES = 32 * 1024 * 1024  # the most that the library takes


def keep_pages() -> None:
    """Let a large answer reuse the memory of the last one, where the C library can be told so.

    By itself it gives that memory back to the system after each answer, which then fills every page of the next
    one with zeros first.
    """
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_TRIM_THRESHOLD, _FREE_MAX_BYTES)
        mallopt(_M_MMAP_THRESHOLD, _VALUE_MAX_BYTES)
