"""Checks Neutron, if networks may be routed: the login, the endpoint and the support of segments."""

from collections.abc import Iterator
from contextlib import closing

from roost.compat.ini import Ini
from roost.errors import BadSettings, Unavailable
from roost.nova.check.check_finding import Finding, Level
from roost.nova.neutron.neutron_api import NeutronAccess, NeutronRefusal
from roost.nova.neutron.neutron_options import ROUTED_NETWORKS, read_neutron_options

_SEGMENT = "segment"  # alias of the extension


def check_neutron(ini: Ini, *, timeout_s: float) -> Iterator[Finding]:
    """Yield a finding about the login, and one about segments."""
    try:
        access = NeutronAccess(read_neutron_options(ini), timeout_s=timeout_s)
        access.check()
        api = access.connect()
    except BadSettings as error:
        yield _finding("error", str(error), "correct section [neutron]; until then, Roost does not start or find hosts")
        return
    except Unavailable as error:
        yield _finding("error", str(error), "start Keystone, or correct auth_url")
        return
    with closing(api):
        try:
            has_segments = api.has_extension(_SEGMENT)
        except (Unavailable, NeutronRefusal) as error:
            advice = "start Neutron, or correct its endpoint; until then, servers with networks get no host"
            yield _finding("error", str(error), advice)
            return
        yield _finding("ok", f"Neutron at {api.url} answers; login works")
    if not has_segments:
        found = f"it has no extension {_SEGMENT}, so no network is routed"
        yield _finding("warning", found, f"load the plug-in segments, or turn {ROUTED_NETWORKS} off")


def _finding(level: Level, found: str, advice: str = "") -> Finding:
    return Finding(level=level, part="neutron", found=found, advice=advice)
