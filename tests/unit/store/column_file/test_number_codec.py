"""Columns of numbers survive as bytes, in the smallest exact type."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.store.column_file.number_codec import pack_integers, pack_reals, unpack_integers, unpack_reals

INT64 = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(INT64) | st.lists(st.integers(0, 300)) | st.lists(st.integers(2**40, 2**40 + 70_000)))
def test_integers_survive(values):
    offset, kind, body = pack_integers(np.array(values, dtype=np.int64))
    found = unpack_integers((offset, kind, memoryview(body)), len(values))
    assert found.dtype == np.int64
    assert found.tolist() == values


@given(st.lists(st.floats(allow_nan=False)))
def test_reals_survive(values):
    offset, kind, body = pack_reals(np.array(values, dtype=np.float64))
    found = unpack_reals((offset, kind, memoryview(body)), len(values))
    assert found.dtype == np.float64
    assert found.tolist() == values


@pytest.mark.parametrize(
    ("values", "kind"),
    [([7] * 9, "<u1"), ([0, 255], "<u1"), ([-1, 255], "<u2"), ([5, 70_000], "<u4"), ([0, 2**32], "<i8")],
)
def test_integers_have_the_smallest_type(values, kind):
    assert pack_integers(np.array(values)).kind == kind


@pytest.mark.parametrize(("values", "kind"), [([1.5, 16.0], "<f4"), ([1.1], "<f8"), ([1e300], "<f8")])
def test_reals_have_the_smallest_exact_type(values, kind):
    assert pack_reals(np.array(values)).kind == kind


@pytest.mark.parametrize("packed", [(0, "<u2", b"abc"), (0, "O", bytes(24)), (0, "<f8", bytes(24)), (0, "<u1", b"")])
def test_wrong_bytes_are_refused(packed):
    offset, kind, body = packed
    with pytest.raises(ValueError, match="3 numbers"):
        unpack_integers((offset, kind, memoryview(body)), 3)
