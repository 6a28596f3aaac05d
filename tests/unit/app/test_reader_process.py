"""The loop of the reader process, with children that end at the moment of an answer."""

import os
import socket
import time

import msgspec

from roost.app.reader_process import Reader, _Child
from roost.model.question import FRAME_HEAD, Cancel


def test_cancelled_child_with_an_answer_does_not_end_the_reader():
    server, channel = socket.socketpair()
    read_end, write_end = os.pipe()
    pid = os.posix_spawn("/bin/sleep", ["sleep", "60"], os.environ)
    with server, channel:
        reader = Reader(channel)
        reader._children[read_end] = _Child(pid=pid, number=7, pipe=read_end, end_s=time.monotonic() + 60)
        os.write(write_end, b"the answer")
        body = msgspec.msgpack.encode(Cancel(number=7))
        server.sendall(len(body).to_bytes(FRAME_HEAD, "big") + body)
        assert reader._poll(1.0)
        assert reader._children == {}
    os.close(write_end)
