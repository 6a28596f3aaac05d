"""Inventories moved to where a driver wants them, while everything but the database is stopped."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

import msgspec

from roost.compute import provider_config
from roost.compute.driver import load
from roost.compute.provider_config import ProviderConfigs
from roost.compute.reshaping import Bringing
from roost.direct.offline import offline
from roost.errors import BadSettings, NotFound
from roost.model.agent import HostTerms, ReshapeTerms

_BARE_METAL = "ironic"  # whose nodes are no hosts, and are told by their own service


class Migrating(msgspec.Struct, frozen=True, kw_only=True):
    """Which host, and how its agent is started."""

    host: str  # name of the service
    driver: str
    options: dict[str, str] = {}  # of the driver
    terms: HostTerms = HostTerms()
    provider_config: str = ""  # folder; empty: none
    nodes: tuple[str, ...] = ()  # empty: all of the host


class Migrated(NamedTuple):
    """What became of a node."""

    node: str
    is_reshaped: bool  # False: nothing needed to move


def migrate_inventory(url: str, asked: Migrating, *, warn: Callable[[str], None]) -> Iterator[Migrated]:
    """Reshape the nodes of a host as its agent would at the start, one after the other; others stay untouched.

    Args:
        url: of the database.
        warn: is told of providers that operators add something to, and that there are not.

    Raises:
        BadSettings: there is no such driver, or it cannot be made; there is no such folder.
        NotFound: the driver or the database has no such node; nothing was moved.
        ReshapeFailed: a node cannot be reshaped; those before it were.
        DriverNotReady: ask again.
        StoreBusy, Unavailable: see ``offline``.
    """
    if asked.driver == _BARE_METAL:
        return
    if asked.provider_config and not Path(asked.provider_config).is_dir():
        raise BadSettings("--provider-config", f"there is no folder {asked.provider_config}")
    driver = load(asked.driver, asked.options, asked.terms)
    configs = ProviderConfigs(provider_config.read(asked.provider_config) if asked.provider_config else [], warn=warn)
    driver.start(asked.host)
    known = driver.nodes()
    for node in asked.nodes:
        if node not in known:
            raise NotFound("node", node, message=f"host {asked.host} has no node {node}, only {', '.join(known)}")
    with offline(url) as report:
        names = asked.nodes or known
        found = {node: report.get_provider_by_name(node)["uuid"] for node in names}
        bringing = Bringing(
            driver, report, configs=configs, terms=ReshapeTerms(), sleep=time.sleep, uniform=Random().uniform
        )
        for node, uuid in found.items():
            yield Migrated(node, bringing.reshape(node, uuid))


def read_pairs(what: str, pairs: Sequence[str]) -> dict[str, str]:
    """Return pairs ``KEY=VALUE`` by key.

    Raises:
        BadSettings: one is no such pair.
    """
    found = {}
    for pair in pairs:
        key, sign, value = pair.partition("=")
        if not key or not sign:
            raise BadSettings(what, f"must be KEY=VALUE, got {pair!r}")
        found[key] = value
    return found


def read_terms(pairs: Mapping[str, str]) -> HostTerms:
    """Return the terms of a host from texts.

    Raises:
        BadSettings: there is no such term, or its value is wrong.
    """
    for key in pairs:
        if key not in HostTerms.__struct_fields__:
            raise BadSettings(f"term {key}", f"is none of {', '.join(HostTerms.__struct_fields__)}")
    try:
        return msgspec.convert(dict(pairs), HostTerms, strict=False)
    except msgspec.ValidationError as error:
        problem, _, key = str(error).replace("`", "").partition(" - at $.")
        raise BadSettings(f"term {key}", problem) from None
