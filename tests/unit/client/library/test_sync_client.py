"""The synchronous client has the methods of the asynchronous one."""

import ast
import re
from pathlib import Path

from roost.client.library import async_client, sync_client

# Words of the asynchronous client, and those of the synchronous one in their place.
WORDS = {
    "AsyncIterator, Callable, Sequence": "Callable, Iterator, Sequence",
    "AsyncIterator": "Iterator",
    "AsyncClient": "Client",
    "An asynchronous": "A synchronous",
    "The asynchronous": "The synchronous",
    "async ": "",
    "await ": "",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "StreamDriver": "SocketDriver",
    "stream_driver": "socket_driver",
}
LOOP = re.compile(r"for each in (page\.\w+):\n +yield each")


def without_await(text):
    """Return the source of the asynchronous client as that of the synchronous one."""
    for word, other in WORDS.items():
        text = text.replace(word, other)
    return LOOP.sub(r"yield from \1", text)


def test_sync_client_is_the_async_client_without_await():
    own, other = (Path(module.__file__).read_text(encoding="utf-8") for module in (sync_client, async_client))
    assert ast.dump(ast.parse(own)) == ast.dump(ast.parse(without_await(other)))
