"""Decoders of structs, built before threads need them.

msgspec builds the decoder of a struct at its first use, and other threads see it half built: two threads that first
decode the same struct at the same time crash the process. So a process calls ``prepare_decoders`` before it starts
threads, and again after it imported further modules.
"""

from collections.abc import Iterator

import msgspec

_prepared: set[type[msgspec.Struct]] = set()


def prepare_decoders() -> int:
    """Build the decoders of all structs in the present modules, except of those that cannot be decoded.

    Call it while no other thread decodes a struct that is new since the last call.

    Returns:
        The number of new structs. 400 take 6 ms.
    """
    new = [kind for kind in find_structs() if kind not in _prepared]
    for kind in new:
        try:
            msgspec.json.Decoder(kind)
        except TypeError:  # It has a field of several structs without tags.
            continue
    _prepared.update(new)
    return len(new)


def find_structs() -> Iterator[type[msgspec.Struct]]:
    """Yield all structs in the present modules, each once."""
    seen: set[type[msgspec.Struct]] = set()
    due: list[type[msgspec.Struct]] = [msgspec.Struct]
    while due:
        for kind in due.pop().__subclasses__():
            if kind not in seen:
                seen.add(kind)
                due.append(kind)
                yield kind
