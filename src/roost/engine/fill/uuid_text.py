"""Many uuids as text."""

from collections.abc import Sequence

import numpy as np

_BYTES, _TEXT = 16, 36
# Hexadecimal digits before each hyphen, and in each group.
_GROUPS = ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))


def uuid_texts(uuids: Sequence[bytes]) -> list[str]:
    """Return uuids in their usual form, as ``str(uuid.UUID(bytes=each))`` does.

    Raises:
        ValueError: one does not have 16 bytes.

    >>> uuid_texts([bytes(range(16))])
    ['00010203-0405-0607-0809-0a0b0c0d0e0f']
    """
    if not set(map(len, uuids)) <= {_BYTES}:
        raise ValueError("a uuid does not have 16 bytes")
    digits = np.frombuffer(b"".join(uuids).hex().encode(), dtype=np.uint8).reshape(len(uuids), 2 * _BYTES)
    texts = np.full((len(uuids), _TEXT), ord("-"), dtype=np.uint8)
    for hyphens, (start, end) in enumerate(_GROUPS):
        texts[:, start + hyphens : end + hyphens] = digits[:, start:end]
    joined = texts.tobytes().decode()
    return [joined[at : at + _TEXT] for at in range(0, len(joined), _TEXT)]
