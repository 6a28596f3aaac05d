import msgspec

from roost.model.writes import PutMembership, Release
from roost.store.rules.codec import decode_writes, encode_writes


def test_writes_of_an_older_version_are_decoded():
    old = [["release", [1], [[1, 65_537, 2]], []], ["release", [2], []], ["membership", 3, 4, [5]]]
    assert decode_writes(msgspec.msgpack.encode(old)) == [
        Release([1], [(1, 65_537, 2)]),
        Release([2], []),
        PutMembership(3, 4, [5]),
    ]


def test_encoded_writes_decode_to_equal_writes():
    writes = [Release([1], [], [], [7]), PutMembership(3, 4, [5], raises=False)]
    assert decode_writes(encode_writes(writes)) == writes
