"""How it is found out who asks, as the settings say."""

from pathlib import Path

from roost.api.access.authentication import trust_headers
from roost.api.access.token_file import TokenFile
from roost.api.asgi import Authenticate
from roost.api.http import Identify
from roost.errors import BadSettings
from roost.model.settings.placement_settings import Placement as Settings


def build_authenticators(settings: Settings) -> tuple[Identify, Authenticate | None]:
    """Return what says at once who asks, and what says it after a while, if anything does.

    Raises:
        BadSettings: a file that is needed is not named, or is not as it should be.
    """
    if settings.auth_strategy == "noauth2":
        return trust_headers, None
    if settings.auth_strategy == "tokens":
        if not settings.tokens_file:
            raise BadSettings("placement.tokens_file", "must name the file of tokens that auth_strategy tokens reads")
        return TokenFile(Path(settings.tokens_file)).identify, None
    if not settings.keystone_file:
        text = "must name the file with a section keystone_authtoken that auth_strategy keystone reads"
        raise BadSettings("placement.keystone_file", text)
    from roost.api.access.keystone_auth import Keystone

    return (lambda _headers: None), Keystone(Path(settings.keystone_file))
