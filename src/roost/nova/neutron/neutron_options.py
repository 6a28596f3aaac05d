"""Section ``[neutron]`` of nova.conf."""

import msgspec

from roost.client.keystone_login import LoginOptions
from roost.compat.ini import Ini
from roost.errors import BadSettings, quote_value
from roost.nova.service_login import read_login_options

# The option of section ``scheduler`` for routed networks.
ROUTED_NETWORKS = "query_placement_for_routed_network_aggregates"
_SECTION = "neutron"
_RETRIES, _RETRIES_MAX = 3, 10


class NeutronOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the section."""

    login: LoginOptions
    retries: int = _RETRIES


def read_neutron_options(ini: Ini) -> NeutronOptions:
    """Read the options of a nova.conf.

    Raises:
        BadSettings: the login is missing, or an option is invalid.

    Source:
        nova/conf/neutron.py, nova/network/neutron.py.
    """
    login = read_login_options(ini, _SECTION, service_type="network")
    retries = ini.get(_SECTION, "http_retries") or str(_RETRIES)
    if login is None or not login.auth_type:
        where = f"{ini.path}: [{_SECTION}]" if login is None else login.where
        raise BadSettings(f"{where} auth_type", f"is missing: [scheduler] {ROUTED_NETWORKS} needs a login at Neutron")
    if not retries.isdecimal():
        problem = f"must be a whole number, got {quote_value(retries)}"
        raise BadSettings(f"{ini.path}: [{_SECTION}] http_retries", problem)
    # One retry at least: the server may have closed the idle connection.
    return NeutronOptions(login=login, retries=min(max(int(retries), 1), _RETRIES_MAX))
