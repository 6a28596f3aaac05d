"""Authentication by Keystone: its own middleware in a few threads, with a cache.

Needs the extra ``keystone``.
"""

import asyncio
import hashlib
import io
import logging
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

from roost.api.access.authentication import parse_roles
from roost.api.http import Identity, Request, Response
from roost.api.problems import Problem
from roost.errors import BadSettings, SettingsMissing, extra_hint, first_line
from roost.observe import log

_THREADS = 8
_IDENTITIES_MAX = 4096
_HEADERS = ("x-auth-token", "x-service-token")
_Environ = dict[str, Any]


class Keystone:
    """Authenticates tokens with Keystone.

    The cache keeps an identity for ``token_cache_time`` seconds (300 by default), at most until its token expires. A
    revoked token may stay valid for this time. The identity of a token with access rules is not cached,
    because these rules depend on the path.

    Args:
        path: of an INI file with a section ``keystone_authtoken``.

    Raises:
        BadSettings: the file is invalid, or the extra is not installed.
    """

    def __init__(self, path: Path) -> None:
        try:
            from keystonemiddleware import auth_token
            from oslo_config import cfg
        except ModuleNotFoundError as error:
            text = f"keystone needs {error.name}: {extra_hint('keystone')}"
            raise BadSettings("placement.auth_strategy", text) from None
        if not path.is_file():
            raise SettingsMissing("placement.keystone_file", f"{path} does not exist; correct the path")
        try:
            conf = cfg.ConfigOpts()
            conf([], project="placement", default_config_files=[str(path)])
            auth_token.AuthProtocol(_accept_all, {"oslo_config_config": conf})  # Declares the options.
            self._cache_s = float(conf.keystone_authtoken.token_cache_time)
            # Switch off the cache of the middleware: with two caches in sequence, their times would add up.
            conf.set_override("token_cache_time", -1, group="keystone_authtoken")
            self._middleware: Any = auth_token.AuthProtocol(_accept_all, {"oslo_config_config": conf})
        except Exception as error:
            # Several libraries read the section, each with its own errors.
            raise BadSettings(str(path), f"[keystone_authtoken] cannot be used: {first_line(error)}") from error
        logger = logging.getLogger("keystonemiddleware")
        logger.propagate = False
        logger.handlers = [_EventHandler(logging.WARNING)]
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="keystone")
        self._identities: dict[
            bytes, tuple[float, Identity]
        ] = {}  # by key: expiry in seconds since the epoch, and identity
        self._pending: dict[tuple[bytes, str, str], asyncio.Future[Identity | Response]] = {}

    async def __call__(self, request: Request, /) -> Identity | Response:
        """Return the identity of the client, or the response that refuses it."""
        key = _key(request)
        cached = self._identities.get(key)
        if cached is not None and cached[0] > time.time():
            return cached[1]
        # Clients often send many requests at once with a new token: requests of one path share one lookup.
        pending_key = key, request.method, request.path
        pending = self._pending.get(pending_key)
        if pending is None:
            loop = asyncio.get_running_loop()
            pending = self._pending[pending_key] = loop.run_in_executor(self._threads, self._authenticate, request, key)
            pending.add_done_callback(lambda _: self._pending.pop(pending_key, None))
        return await asyncio.shield(pending)

    def _authenticate(self, request: Request, key: bytes) -> Identity | Response:
        environ = _environ(request)
        heads: list[tuple[str, list[tuple[str, str]]]] = []

        def start_response(status: str, headers: list[tuple[str, str]], _error: object = None) -> Callable[..., None]:
            heads.append((status, headers))
            return lambda _data: None

        try:
            body = b"".join(self._middleware(environ, start_response))
        except Exception as error:  # noqa: BLE001  # several libraries are involved, each with its own errors
            log.fault(request.request_id, error)
            raise Problem(503, "Keystone is not available to authenticate the client; try again.") from None
        user = environ.get("HTTP_X_USER_ID")
        status = int(heads[0][0].split()[0])
        if status != 200 or not user:
            headers = {name.lower(): value for name, value in heads[0][1]}
            return Response(status=status if status != 200 else 401, body=body, headers=headers)
        identity = Identity(
            user_id=user,
            project_id=environ.get("HTTP_X_PROJECT_ID", ""),
            roles=parse_roles(environ.get("HTTP_X_ROLES", "")),
            is_system_scoped=bool(environ.get("HTTP_OPENSTACK_SYSTEM_SCOPE")),
        )
        self._store(key, identity, environ.get("keystone.token_info", {}).get("token", {}))
        return identity

    def _store(self, key: bytes, identity: Identity, token: dict[str, Any]) -> None:
        if (token.get("application_credential") or {}).get("access_rules") is not None:
            return
        until_s = time.time() + self._cache_s
        if token.get("expires_at"):
            until_s = min(until_s, datetime.fromisoformat(token["expires_at"]).timestamp())
        if len(self._identities) >= _IDENTITIES_MAX:
            self._identities.clear()
        self._identities[key] = until_s, identity


class _EventHandler(logging.Handler):
    """Converts log records of the middleware to events."""

    def emit(self, record: logging.LogRecord) -> None:
        log.write("keystone", {"message": record.getMessage()}, level=log.level_of(record), logger=record.name)


def _accept_all(_environ: _Environ, start_response: Callable[..., object]) -> Iterable[bytes]:
    """The WSGI application behind the middleware."""
    start_response("200 OK", [])
    return [b""]


def _key(request: Request) -> bytes:
    digest = hashlib.sha256()
    for name in _HEADERS:
        value = request.headers.get(name, "").encode("latin-1", "replace")
        digest.update(len(value).to_bytes(4, "big") + value)
    return digest.digest()


def _environ(request: Request) -> _Environ:
    environ: _Environ = {
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": request.prefix,
        "PATH_INFO": request.path,
        "QUERY_STRING": "",
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(),
        "wsgi.errors": io.StringIO(),
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    for name in _HEADERS:
        if name in request.headers:
            environ[f"HTTP_{name.upper().replace('-', '_')}"] = request.headers[name]
    return environ
