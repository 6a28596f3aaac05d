"""Counterpart of ``nova.conf``: CONF with Roost's settings."""

from typing import Any

from roost.compat.aliases import lend_names
from roost.compat.config_view import fill

lend_names()
# The installed library, or else the stand-in.
from oslo_config import cfg  # type: ignore[import-not-found,unused-ignore]  # noqa: E402

CONF: Any = cfg.CONF
fill(CONF)
