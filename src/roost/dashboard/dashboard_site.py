"""The ASGI application of the dashboard: one page for all paths, and the files that it loads.

The page has no data and needs no sign-in: all data comes by the API.
"""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from importlib import resources
from typing import Any

from roost.dashboard.static_files import Files, LibrariesMissing, StaticFile, read_files

PREFIX = "/ui"
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
# Returns the status and the text of a refusal; None: the host name and the origin of a request are fine.
CheckOrigin = Callable[[Mapping[str, str]], tuple[int, str] | None]

_TEXT = "text/plain; charset=utf-8"
_NO_STORE, _REVALIDATE, _FOR_EVER = "no-store", "no-cache", "public, max-age=31536000, immutable"
_COMMON = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
_HSTS = {"strict-transport-security": "max-age=31536000"}


class DashboardSite:
    """The dashboard.

    Args:
        authentication: the strategy of the server, for the form of the page.
        version: of Roost.
        check_origin: refuses requests under a foreign host name.
    """

    def __init__(self, *, authentication: str, version: str, check_origin: CheckOrigin) -> None:
        self._check_origin = check_origin
        self._files: Files | None = None
        self._problem = ""
        folder = resources.files("roost.dashboard").joinpath("static")
        try:
            facts = {"authentication": authentication, "version": version}
            self._files = read_files(folder, prefix=PREFIX, facts=facts)
        except LibrariesMissing as error:
            self._problem = f"{error}\n"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._check_origin(headers)
        if refusal is not None:
            status, text = refusal
            await self._send_text(scope, send, status=status, text=f"{text}\n")
        elif scope["method"] not in {"GET", "HEAD"}:
            await self._send_text(scope, send, status=405, text="only GET is supported\n", more={"allow": "GET, HEAD"})
        elif scope["path"] == "/" or scope["path"] == PREFIX:
            await self._send_text(scope, send, status=307, text="", more={"location": f"{PREFIX}/"})
        elif self._files is None:
            await self._send_text(scope, send, status=503, text=self._problem)
        else:
            await self._send_file(scope, send, self._files, accepted=headers.get("accept-encoding", ""))

    async def _send_file(self, scope: Scope, send: Send, files: Files, *, accepted: str) -> None:
        """Send a static file, or the page for any other path: the page shows what its path names."""
        path: str = scope["path"]
        head = f"{PREFIX}/static/"
        if not path.startswith(head):
            policy = {"content-security-policy": _policy_of(files)}
            await self._send(scope, send, files.page, accepted=accepted, more={"cache-control": _REVALIDATE, **policy})
            return
        version, _, name = path.removeprefix(head).partition("/")
        found = files.by_name.get(name) if version == files.version else None
        if found is None:
            await self._send_text(scope, send, status=404, text="no such file in this version of the dashboard\n")
        else:
            await self._send(scope, send, found, accepted=accepted, more={"cache-control": _FOR_EVER})

    async def _send(
        self, scope: Scope, send: Send, file: StaticFile, *, accepted: str, more: Mapping[str, str], status: int = 200
    ) -> None:
        is_compressed = "gzip" in accepted
        body = file.compressed if is_compressed else file.body
        headers = {
            "content-type": file.content_type,
            "content-length": str(len(body)),
            "vary": "accept-encoding",
            **({"content-encoding": "gzip"} if is_compressed else {}),
            **_COMMON,
            **(_HSTS if scope.get("scheme") == "https" else {}),
            **more,
        }
        encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": status, "headers": encoded})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    async def _send_text(
        self, scope: Scope, send: Send, *, status: int, text: str, more: Mapping[str, str] | None = None
    ) -> None:
        body = text.encode()
        file = StaticFile(content_type=_TEXT, body=body, compressed=body)
        await self._send(
            scope, send, file, accepted="", status=status, more={"cache-control": _NO_STORE, **(more or {})}
        )


def _policy_of(files: Files) -> str:
    """Return the content security policy: everything comes from this server, and no script is in the page."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src 'self' '{files.script_hash}'",
            "style-src 'self'",
            "img-src 'self' data:",
            "connect-src 'self'",
            "form-action 'self'",
            "base-uri 'none'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
        )
    )
