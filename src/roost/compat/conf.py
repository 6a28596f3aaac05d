"""What Nova has in ``nova.conf``: CONF, which shows Roost's settings."""

from typing import Any

from roost.compat.aliases import lend_names
from roost.compat.config_view import fill

lend_names()
# Of the library where it is installed, else of the stand-in here.
from oslo_config import cfg  # type: ignore[import-not-found,unused-ignore]  # noqa: E402

CONF: Any = cfg.CONF
fill(CONF)
