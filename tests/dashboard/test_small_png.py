"""Pictures of pages with few colours."""

import struct
import zlib

import numpy as np

from tests.dashboard.small_png import _START, _chunk, decode, shrink


def picture_of(pixels):
    """Return a picture as a browser could make it: each row has another filter."""
    height, width, size = pixels.shape
    rows = []
    flat = pixels.reshape(height, -1).astype(int)
    for number, row in enumerate(flat):
        kind = number % 5
        left = np.concatenate([np.zeros(size, int), row[:-size]])
        above = flat[number - 1] if number else np.zeros_like(row)
        corner = np.concatenate([np.zeros(size, int), above[:-size]])
        guess = left + above - corner
        near = np.abs(np.stack([left, above, corner]) - guess).argmin(axis=0)
        paeth = np.choose(near, [left, above, corner])
        guesses = [np.zeros_like(row), left, above, (left + above) // 2, paeth]
        rows.append(bytes([kind]) + ((row - guesses[kind]) % 256).astype(np.uint8).tobytes())
    head = struct.pack(">IIBBBBB", width, height, 8, {3: 2, 4: 6}[size], 0, 0, 0)
    parts = [(b"IHDR", head), (b"IDAT", zlib.compress(b"".join(rows))), (b"IEND", b"")]
    return _START + b"".join(_chunk(*part) for part in parts)


def test_pictures_are_decoded_whatever_their_filters():
    random = np.random.default_rng(1)
    for size in (3, 4):
        pixels = random.integers(0, 256, (11, 7, size), dtype=np.uint8)
        assert np.array_equal(decode(picture_of(pixels)), pixels[:, :, :3])


def test_few_colours_stay_as_they_are():
    random = np.random.default_rng(2)
    palette = random.integers(0, 256, (200, 3), dtype=np.uint8)
    pixels = palette[random.integers(0, 200, (40, 50))]
    assert np.array_equal(decode(shrink(picture_of(pixels))), pixels)


def test_many_colours_become_near_ones():
    steps = np.arange(3000) % 256
    pixels = np.stack([steps, steps // 2, np.arange(3000) // 12], axis=1).astype(np.uint8).reshape(50, 60, 3)
    small = decode(shrink(picture_of(pixels)))
    assert len(np.unique(small.reshape(-1, 3), axis=0)) <= 256
    assert np.abs(small.astype(int) - pixels).mean() < 12
