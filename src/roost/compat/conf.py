"""Counterpart of ``nova.conf``: CONF with Roost's settings."""

from typing import Any

from roost.compat.aliases import install_aliases
from roost.compat.config_view import fill

install_aliases()
# The installed library, or else the stand-in.
from oslo_config import cfg  # type: ignore[import-not-found,unused-ignore]  # noqa: E402

CONF: Any = cfg.CONF
fill(CONF)
