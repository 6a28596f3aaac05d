"""Both clients of the library, with the same blocking methods for tests."""

import asyncio
import inspect
from contextlib import contextmanager

from roost.client import AsyncClient, Client


class BlockingClient:
    """An asynchronous client whose methods wait for their results on a loop of its own."""

    def __init__(self, *arguments, **options):
        self._runner = asyncio.Runner()
        self._client = self._runner.run(self._open(arguments, options))

    async def _open(self, arguments, options):
        return AsyncClient(*arguments, **options)

    def __getattr__(self, name):
        method = getattr(self._client, name)

        def call(*arguments, **options):
            result = method(*arguments, **options)
            return self._iterate(result) if hasattr(result, "__anext__") else self._runner.run(result)

        assert inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method) or name == "events"
        return call

    def _iterate(self, iterator):
        try:
            while True:
                try:
                    yield self._runner.run(anext(iterator))
                except StopAsyncIteration:
                    return
        finally:
            self._runner.run(iterator.aclose())

    def close(self):
        """Close the client and its loop."""
        self._runner.run(self._client.close())
        self._runner.close()


KINDS = {"sync": Client, "async": BlockingClient}


@contextmanager
def library_client(kind, *arguments, **options):
    """Open a client of a kind."""
    client = KINDS[kind](*arguments, **options)
    try:
        yield client
    finally:
        client.close()
