import pickle

import pytest

from roost.errors import (
    BadFile,
    BadRequest,
    BadSettings,
    MaxRetriesExceeded,
    NotFound,
    NoValidHost,
    ReshapeFailed,
    ReshapeNeeded,
    StoreBusy,
)


@pytest.mark.parametrize(
    "error",
    [
        BadRequest("no"),
        BadFile("pods.csv", "is empty", line=3, column="name"),
        BadSettings("roost.toml", "is not TOML"),
        NotFound("host", "a"),
        NoValidHost("all are full"),
        MaxRetriesExceeded("nothing is left"),
        StoreBusy("another process serves it"),
        ReshapeNeeded("node", "VGPU"),
        ReshapeFailed("node", "guest holds what it does not use"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_error_is_unchanged_after_pickling(error):
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)
