"""PNG files of plots."""

import struct
import zlib


def size_of(path):
    """Check every chunk of a PNG; return width and height."""
    body = path.read_bytes()
    assert body.startswith(b"\x89PNG\r\n\x1a\n")
    at, kinds, size = 8, [], None
    while at < len(body):
        length, kind = struct.unpack(">I4s", body[at : at + 8])
        content = body[at + 8 : at + 8 + length]
        assert struct.unpack(">I", body[at + 8 + length : at + 12 + length]) == (zlib.crc32(kind + content),)
        if kind == b"IHDR":
            size = struct.unpack(">II", content[:8])
        kinds.append(kind)
        at += 12 + length
    assert kinds[-1] == b"IEND"
    return size
