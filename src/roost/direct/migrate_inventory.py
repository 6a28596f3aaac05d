"""Moves inventories to the providers of a driver's layout while all services but the database are stopped."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import NamedTuple

import msgspec

from roost.compute.driver import load
from roost.compute.driver_values import check_nodes
from roost.compute.inventory import provider_config
from roost.compute.inventory.provider_config import ProviderConfigs
from roost.compute.inventory.reshape import Reshaper
from roost.direct.offline_report import open_report
from roost.errors import BadSettings, NotFound, RoostError, Unavailable, error_text
from roost.model.settings.agent_settings import Agent as AgentSettings
from roost.model.work.agent_terms import HostTerms, ReshapeTerms
from roost.observe import log

_BARE_METAL = "ironic"  # its nodes are not hosts; another service reports them


class MigrateOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The host, and the options of its agent."""

    host: str  # name of the service
    driver: str
    options: dict[str, str] = {}  # of the driver
    terms: HostTerms = HostTerms()
    reshape: ReshapeTerms = ReshapeTerms()
    provider_config: str = ""  # folder; may be missing
    nodes: tuple[str, ...] = ()  # empty: all of the host


class NodeResult(NamedTuple):
    """The result for one node."""

    node: str
    is_reshaped: bool  # False: nothing needed to move


def read_options(
    settings: AgentSettings,
    *,
    host: str,
    driver: str,
    options: Sequence[str],
    terms: Sequence[str],
    provider_config: str,
    nodes: Sequence[str],
) -> MigrateOptions:
    """Read the options of a host's agent from its settings and the command line.

    Args:
        settings: of the agent.
        options: options of the driver, ``KEY=VALUE`` each.
        terms: terms of the host, ``KEY=VALUE`` each; they override the settings.
        provider_config: folder; empty: that of the settings.
        nodes: empty: all nodes of the host.

    Raises:
        BadSettings: a pair or a term is invalid, or the folder is missing.
    """
    if provider_config and not Path(provider_config).is_dir():
        raise BadSettings("--provider-config", f"there is no folder {provider_config}")
    return MigrateOptions(
        host=host,
        driver=driver,
        options=_read_pairs("--option", options),
        terms=_read_terms(_read_pairs("--term", terms), otherwise=settings.terms),
        reshape=settings.reshape,
        provider_config=provider_config or settings.provider_config_location,
        nodes=tuple(nodes),
    )


def migrate_inventory(url: str, options: MigrateOptions, *, warn: Callable[[str], None]) -> Iterator[NodeResult]:
    """Reshape the nodes of a host one after the other, as the host's agent would at its start.

    Args:
        url: URL of the database.
        warn: called once for each missing provider of a provider config file.

    Raises:
        BadSettings: the driver is unknown or cannot start, or a provider config file is invalid.
        NotFound: the driver or the database has no such node; nothing was moved.
        ReshapeFailed: a node cannot be reshaped; earlier nodes were.
        DriverNotReady: try again later.
        Unavailable: the driver failed, or conflicts with the provider config files; the node was not reshaped.
        StoreBusy, Unavailable: see ``open_report``.
    """
    if options.driver == _BARE_METAL:
        return
    driver = load(options.driver, options.options, options.terms)
    configs = ProviderConfigs(provider_config.read(options.provider_config), warn=warn)
    with _report_driver_error(f"host {options.host}"):
        driver.start(options.host)
        driver_nodes = check_nodes(driver.nodes())
    for node in options.nodes:
        if node not in driver_nodes:
            raise NotFound(
                "node", node, message=f"host {options.host} has no node {node}, only {', '.join(driver_nodes)}"
            )
    with open_report(url) as report:
        names = options.nodes or driver_nodes
        root_uuids = {node: report.get_provider_by_name(node)["uuid"] for node in names}
        reshaper = Reshaper(
            driver, report, configs=configs, terms=options.reshape, sleep=time.sleep, uniform=Random().uniform
        )
        for node, uuid in root_uuids.items():
            with _report_driver_error(f"node {node}"):
                is_reshaped = reshaper.reshape(node, uuid)
            yield NodeResult(node, is_reshaped)


@contextmanager
def _report_driver_error(subject: str) -> Iterator[None]:
    """Convert unexpected errors of a driver to one sentence, with the traceback in the log.

    Raises:
        Unavailable: the driver raised an unexpected error.
    """
    try:
        yield
    except RoostError:
        raise
    except Exception as error:
        log.fault(subject, error)
        raise Unavailable(f"{subject}: {error_text(error)}") from error


def _read_pairs(option: str, pairs: Sequence[str]) -> dict[str, str]:
    """Read pairs ``KEY=VALUE`` into a dict.

    Raises:
        BadSettings: a pair is invalid.
    """
    values = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise BadSettings(option, f"must be KEY=VALUE, got {pair!r}")
        values[key] = value
    return values


def _read_terms(pairs: Mapping[str, str], *, otherwise: HostTerms) -> HostTerms:
    """Return the terms of a host: the pairs, and those of ``otherwise`` for missing keys.

    Raises:
        BadSettings: a term is unknown, or its value is invalid.
    """
    for key in pairs:
        if key not in HostTerms.__struct_fields__:
            raise BadSettings(f"term {key}", f"does not exist; the terms are {', '.join(HostTerms.__struct_fields__)}")
    try:
        return msgspec.convert(msgspec.to_builtins(otherwise) | dict(pairs), HostTerms, strict=False)
    except msgspec.ValidationError as error:
        problem, _, key = str(error).replace("`", "").partition(" - at $.")
        raise BadSettings(f"term {key}", problem) from None
