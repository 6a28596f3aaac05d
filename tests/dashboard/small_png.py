"""Makes pictures of pages small: their few colours need a palette of 256, without a visible difference."""

import struct
import zlib
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Pixels = npt.NDArray[np.uint8]

_START = b"\x89PNG\r\n\x1a\n"
_BYTES_OF_KIND = {2: 3, 6: 4}  # of one pixel: with and without transparency
_COLOURS, _FREQUENT = 256, 192


def shrink(png: bytes) -> bytes:
    """Return a picture with at most 256 colours.

    Args:
        png: a picture with 8 bits a channel, as browsers make it; transparency is lost.
    """
    pixels = decode(png)
    height, width, _ = pixels.shape
    palette, indexes = _choose_palette(pixels)
    rows = np.concatenate([np.zeros((height, 1), np.uint8), indexes], axis=1)
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = [(b"IHDR", head), (b"PLTE", palette.tobytes()), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b"")]
    return _START + b"".join(_chunk(*part) for part in parts)


def decode(png: bytes) -> Pixels:
    """Return the pixels of a picture: uint8, shape (height, width, 3)."""
    chunks = list(_chunks(png))
    width, height, _, kind = struct.unpack(">IIBB", chunks[0][1][:10])
    body = zlib.decompress(b"".join(data for name, data in chunks if name == b"IDAT"))
    if kind == 3:
        palette = np.frombuffer(dict(chunks)[b"PLTE"], np.uint8).reshape(-1, 3)
        found: Pixels = palette[np.frombuffer(body, np.uint8).reshape(height, width + 1)[:, 1:]]
        return found
    size = _BYTES_OF_KIND[kind]
    rows = np.frombuffer(body, np.uint8).reshape(height, 1 + width * size)
    pixels = np.zeros((height, width * size), np.uint8)
    above = pixels[0].copy()
    for number, row in enumerate(rows):
        above = pixels[number] = _undo_filter(int(row[0]), row[1:], above, size)
    return pixels.reshape(height, width, size)[:, :, :3]


def _undo_filter(kind: int, row: Pixels, above: Pixels, size: int) -> Pixels:
    """Return a row of bytes; see the PNG specification, 9.2."""
    if kind == 0:
        return row
    if kind == 1:
        sums: Pixels = np.cumsum(row.reshape(-1, size), axis=0, dtype=np.uint64).astype(np.uint8).reshape(-1)
        return sums
    if kind == 2:
        return row + above
    found, upper = [0] * size + row.tolist(), [0] * size + above.tolist()
    for at in range(size, len(found)):
        left, up, corner = found[at - size], upper[at], upper[at - size]
        guess = (
            (left + up) // 2 if kind == 3 else min((left, up, corner), key=lambda each: abs(left + up - corner - each))
        )
        found[at] = (found[at] + guess) & 255
    return np.array(found[size:], np.uint8)


def _choose_palette(pixels: Pixels) -> tuple[Pixels, Pixels]:
    """Return a palette, and the index of each pixel: the frequent colours, then those that would differ most."""
    wide = pixels.astype(np.int64)
    codes = wide[..., 0] << 16 | wide[..., 1] << 8 | wide[..., 2]
    found, inverse, counts = np.unique(codes, return_inverse=True, return_counts=True)
    colours = np.stack([found >> 16, found >> 8 & 255, found & 255], axis=1)
    chosen = np.argsort(-counts, kind="stable")[:_FREQUENT].tolist()
    distances = np.stack([_distances(colours, each) for each in chosen])
    nearest, least = distances.argmin(axis=0), distances.min(axis=0)
    while len(chosen) < _COLOURS and least.any():
        chosen.append(int((least * counts).argmax()))
        distance = _distances(colours, chosen[-1])
        is_nearer = distance < least
        nearest[is_nearer], least[is_nearer] = len(chosen) - 1, distance[is_nearer]
    return colours[chosen].astype(np.uint8), nearest[inverse.reshape(codes.shape)].astype(np.uint8)


def _distances(colours: npt.NDArray[np.int64], at: int) -> npt.NDArray[np.int64]:
    squares: npt.NDArray[np.int64] = ((colours - colours[at]) ** 2).sum(axis=1)
    return squares


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(_START)
    while at < len(png):
        (size,) = struct.unpack(">I", png[at : at + 4])
        yield png[at + 4 : at + 8], png[at + 8 : at + 8 + size]
        at += size + 12


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
