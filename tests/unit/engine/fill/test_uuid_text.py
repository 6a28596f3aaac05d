from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.engine.fill.uuid_text import uuid_texts


@given(st.lists(st.binary(min_size=16, max_size=16)))
def test_texts_equal_those_of_the_standard_library(uuids):
    assert uuid_texts(uuids) == [str(UUID(bytes=each)) for each in uuids]


def test_a_short_uuid_is_refused():
    with pytest.raises(ValueError, match="16 bytes"):
        uuid_texts([bytes(16), bytes(15)])
