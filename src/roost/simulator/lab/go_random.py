"""The random numbers of programs written in Go before version 1.20, so that published experiments can be repeated.

Source:
    math/rand of Go 1.19: an additive lagged Fibonacci generator modulo 2^64, x[n] = x[n - 607] + x[n - 273].
"""

import functools
from collections.abc import MutableSequence
from typing import Any

import numpy as np
import numpy.typing as npt

_LENGTH, _TAP = 607, 273
_FEED = _LENGTH - _TAP
_MASK_64, _MASK_63, _MASK_32 = (1 << 64) - 1, (1 << 63) - 1, (1 << 32) - 1
_INT31_END = 1 << 31
_MINIMAL_MODULUS, _MINIMAL_FACTOR = (1 << 31) - 1, 48271  # of the generator that fills the initial state
_SKIPPED = 20  # first numbers of that generator
_ZERO_SEED = 89482311  # Go's replacement of the seed 0
_BASE_DRAWS = 7_800_000_000_000  # between the fill with seed 1 and Go's base table

_Words = npt.NDArray[np.uint64]


class GoRandom:
    """A generator with the numbers of Go's ``rand.New(rand.NewSource(seed))``.

    >>> random = GoRandom(1)
    >>> [random.intn(100) for _ in range(10)]
    [81, 87, 47, 59, 81, 18, 25, 40, 56, 0]
    """

    __slots__ = ("_feed", "_state", "_tap")

    def __init__(self, seed: int) -> None:
        self._state = [mixed ^ base for mixed, base in zip(_fill(seed, shifts=(40, 20, 0)), base_table(), strict=True)]
        self._tap, self._feed = 0, _FEED

    def _uint64(self) -> int:
        self._tap = (self._tap - 1) % _LENGTH
        self._feed = (self._feed - 1) % _LENGTH
        number = self._state[self._feed] = (self._state[self._feed] + self._state[self._tap]) & _MASK_64
        return number

    def int63(self) -> int:
        """Return the next number, 0..2**63 - 1."""
        return self._uint64() & _MASK_63

    def _uint32(self) -> int:
        return self.int63() >> 31

    def _int31(self) -> int:
        return self.int63() >> 32

    def intn(self, end: int) -> int:
        """Return a number in 0..end - 1; 1 <= end < 2**31."""
        assert 1 <= end < _INT31_END, end
        if not end & (end - 1):
            return self._int31() & (end - 1)
        last = _INT31_END - 1 - _INT31_END % end  # Higher numbers would favour small remainders.
        number = self._int31()
        while number > last:
            number = self._int31()
        return number % end

    def _draw_below(self, end: int) -> int:
        """Return a number in 0..end - 1 as ``shuffle`` draws it, which differs from ``intn``."""
        product = self._uint32() * end
        least = ((1 << 32) - end) % end
        while product & _MASK_32 < least:
            product = self._uint32() * end
        return product >> 32

    def shuffle(self, items: MutableSequence[Any]) -> None:
        """Shuffle a sequence in place."""
        for at in range(len(items) - 1, 0, -1):
            other = self._draw_below(at + 1)
            items[at], items[other] = items[other], items[at]

    def perm(self, count: int) -> list[int]:
        """Return a permutation of 0..count - 1."""
        order = [0] * count
        for at in range(count):
            other = self.intn(at + 1)
            order[at] = order[other]
            order[other] = at
        return order


@functools.cache
def base_table() -> tuple[int, ...]:
    """Return the table that Go mixes with every seed, derived as its authors did: by drawing 7.8 * 10**12 numbers.

    The numbers are a linear recurrence, so the state after any number of draws is a linear combination of the first
    607 numbers. Its coefficients are those of t**draws modulo the polynomial of the recurrence.
    """
    filled = _fill(1, shifts=(20, 10, 0))
    numbers = np.zeros(2 * _LENGTH - 1, dtype=np.uint64)
    numbers[:_LENGTH] = [filled[(_FEED - at) % _LENGTH] for at in range(1, _LENGTH + 1)]
    for at in range(_LENGTH, len(numbers)):
        numbers[at] = numbers[at - _LENGTH] + numbers[at - _TAP]
    coefficients = _power(_BASE_DRAWS)
    table = [0] * _LENGTH
    for at in range(_LENGTH):
        combined = int((coefficients * numbers[at : at + _LENGTH]).sum(dtype=np.uint64))
        table[(_FEED - (_BASE_DRAWS - _LENGTH + 1 + at)) % _LENGTH] = combined
    return tuple(table)


def _fill(seed: int, *, shifts: tuple[int, int, int]) -> list[int]:
    """Return an initial state: 607 words of 64 bits, each from three numbers of a simple generator."""
    number = seed % _MINIMAL_MODULUS or _ZERO_SEED
    for _ in range(_SKIPPED):
        number = number * _MINIMAL_FACTOR % _MINIMAL_MODULUS
    words = []
    for _ in range(_LENGTH):
        word = 0
        for shift in shifts:
            number = number * _MINIMAL_FACTOR % _MINIMAL_MODULUS
            word ^= number << shift
        words.append(word & _MASK_64)
    return words


def _power(exponent: int) -> _Words:
    """Return t**exponent modulo t**607 - t**334 - 1, coefficients modulo 2**64, lowest first."""
    power = np.zeros(_LENGTH, dtype=np.uint64)
    power[0] = 1
    for bit in f"{exponent:b}":
        power = _reduce(np.convolve(power, power))
        if bit == "1":
            power = _reduce(np.concatenate([np.zeros(1, dtype=np.uint64), power]))
    return power


def _reduce(polynomial: _Words) -> _Words:
    """Reduce a polynomial to 607 coefficients: t**n is t**(n - 273) + t**(n - 607)."""
    rest = polynomial.copy()
    end = len(rest)
    while end > _LENGTH:
        start = max(_LENGTH, end - _TAP)
        rest[start - _TAP : end - _TAP] += rest[start:end]
        rest[start - _LENGTH : end - _LENGTH] += rest[start:end]
        end = start
    return rest[:_LENGTH]
