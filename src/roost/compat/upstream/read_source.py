"""Chooses the reader of a Placement: for its database, or for its API."""

from collections.abc import Callable, Mapping
from functools import partial

from roost.compat.upstream.placement_world import Progress, World
from roost.compat.upstream.read_http import read_http
from roost.compat.upstream.read_sql import read_sql
from roost.compat.upstream.sql_drivers import is_sql
from roost.errors import BadRequest


def reader_of(source: str, *, headers: Mapping[str, str], progress: Progress) -> Callable[[], World]:
    """Return a function that reads all data of a source; see ``read_sql`` and ``read_http``.

    Args:
        source: URL of a database or of an API.
        headers: headers of requests to an API.

    Raises:
        BadRequest: the source is another kind of URL.
    """
    if is_sql(source):
        return partial(read_sql, source, progress=progress)
    if source.startswith(("http://", "https://")):
        return partial(read_http, source, headers=headers, progress=progress)
    raise BadRequest("--from must be the URL of a database or of an API, or the path of a placement.conf")


def without_password(url: str) -> str:
    """Return a URL without password and parameters, to be shown and stored.

    >>> without_password("mysql://placement:secret@db/placement")
    'mysql://placement@db/placement'
    """
    scheme, separator, rest = url.partition("://")
    place, slash, path = rest.partition("/")
    account, at, host = place.rpartition("@")
    return f"{scheme}{separator}{account.partition(':')[0]}{at}{host}{slash}{path.partition('?')[0]}"
