import msgspec

from roost.model.writes import PutMembership, Release
from roost.store.rules.codec import decode_writes, encode_writes


def test_changes_that_an_older_version_wrote_are_understood():
    old = [["release", [1], [[1, 65_537, 2]], []], ["release", [2], []], ["membership", 3, 4, [5]]]
    assert decode_writes(msgspec.msgpack.encode(old)) == [
        Release([1], [(1, 65_537, 2)]),
        Release([2], []),
        PutMembership(3, 4, [5]),
    ]


def test_changes_come_back_as_they_were_written():
    writes = [Release([1], [], [], [7]), PutMembership(3, 4, [5], raises=False)]
    assert decode_writes(encode_writes(writes)) == writes
