"""Sessions of browsers, and the permissions of a client."""

import secrets
import time

import msgspec

from roost.api.access.browser_session import KEY_BYTES, NONCE_BYTES, TOKEN_BYTES_MAX, encode_base64url, seal
from roost.api.access.session_cookie import TOKEN_HEADER, check_page, cookie_header, is_plain_http
from roost.api.http import Response
from roost.api.problems import Problem
from roost.api.v1 import permission
from roost.api.v1.call import Call, json_response
from roost.api.v1.policies import DEFAULTS
from roost.api.v1.schemas.sessions import NewSession, ShownSession

_HOUR_S = 3600
_POLICIES = sorted(name for name in DEFAULTS if name.startswith("roost:"))
_NO_STORE = {"cache-control": "no-store"}


def create(call: Call) -> Response:
    """Begin a session of a browser, for the token in the header x-auth-token.

    Scripts cannot read the cookie of the response. Later requests need no token: the browser sends the cookie, and the
    page sends the key as header X-Roost-Session-Key. Changes also need the header Origin; browsers send it. Only pages
    of this server can use the session, whatever the CORS settings allow. It ends after placement.session_hours, or with
    the token. The server stores nothing.
    """
    request = call.request
    check_page(request)
    if request.session_end_s is not None:
        raise Problem(403, "a session cannot begin another session; send x-auth-token")
    token = request.headers.get(TOKEN_HEADER, "")
    if len(token) > TOKEN_BYTES_MAX:
        raise Problem(400, f"the token has {len(token):,} bytes; a cookie has room for {TOKEN_BYTES_MAX:,}")
    now_s, age_max_s = time.time(), int(_HOUR_S * call.product.settings.placement.session_hours)
    key, expires_at_s = secrets.token_bytes(KEY_BYTES), int(now_s) + age_max_s
    cookie = seal(token, key, expires_at_s=expires_at_s, nonce=secrets.token_bytes(NONCE_BYTES))
    client = msgspec.structs.asdict(_describe_client(call, expires_at_s))
    response = json_response(NewSession(**client, key=encode_base64url(key)), status=201)
    headers = {**response.headers, **_NO_STORE, **cookie_header(request, cookie, age_max_s=age_max_s)}
    return Response(status=201, body=response.body, headers=headers)


def show(call: Call) -> Response:
    """Show the client and its permissions, for a token or a session.

    The policies allow requests for the project of the client. For other projects, the client also needs
    roost:all_projects.
    """
    return json_response(_describe_client(call, call.request.session_end_s))


def delete(call: Call) -> Response:
    """End the session of the browser: the response deletes its cookie, even if the session has ended.

    It needs no authentication.
    """
    check_page(call.request)
    return Response(status=204, headers={**_NO_STORE, **cookie_header(call.request, "", age_max_s=0)})


def _describe_client(call: Call, session_end_s: int | None) -> ShownSession:
    identity = call.identity
    return ShownSession(
        user_id=identity.user_id,
        project_id=identity.project_id,
        roles=sorted(identity.roles),
        is_system_scoped=identity.is_system_scoped,
        policies=[name for name in _POLICIES if permission.is_allowed(call.allows, name, identity)],
        expires_at_s=None if session_end_s is None else float(session_end_s),
        is_plain_http=is_plain_http(call.request),
    )
