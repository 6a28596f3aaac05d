"""The file of tokens of a server with ``auth_strategy = "tokens"``."""

from collections.abc import Mapping
from pathlib import Path

from roost.api.access.authentication import as_toml, new_token


def write_tokens(
    folder: Path, roles: Mapping[str, tuple[str, ...]], *, project: str = "shop"
) -> tuple[dict[str, str], str]:
    """Write ``tokens.toml`` with a token for each user.

    Args:
        folder: the folder of the server.
        roles: the roles of each user.
        project: the project of all users.

    Returns:
        The token of each user, and the settings for the server.
    """
    made = {name: new_token(name, project=project, roles=each) for name, each in roles.items()}
    file = folder / "tokens.toml"
    file.write_text("".join(as_toml(stored) for _, stored in made.values()), encoding="utf-8")
    file.chmod(0o600)
    return {name: text for name, (text, _) in made.items()}, f'auth_strategy = "tokens"\ntokens_file = "{file}"\n'
