"""The check of ``roost nova-scheduler``: its settings, and the Nova that it is to serve. It changes nothing."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from roost.app.database_choice import check_settings
from roost.app.placement_server import ServerConfig, resolve_server_config
from roost.app.remote_placement import open_connections
from roost.errors import BadSettings, extra_hint
from roost.machine import SystemClock
from roost.placement.current import Current
from roost.settings import LoadedSettings, find_nova_conf
from roost.store import backends

if TYPE_CHECKING:
    from roost.nova.check.check_finding import Finding, Level
    from roost.nova.check.deployment_check import ReadPlacement
    from roost.nova.check.placement_picture import PlacementPicture

_OWN = "Roost's own Placement"
# Notes about many options of a file, which every nova.conf has: other services read these.
_SUMMARIES = ("these options of", "these sections")
_DISCOVERY = "discover_hosts_in_cells_interval"


def check_nova_deployment(
    config: Path | None,
    data: Path | None,
    environ: Mapping[str, str],
    *,
    conf: Path | None = None,
    database: str | None = None,
    overrides: Mapping[str, object],
) -> "list[Finding]":
    """Check settings, message broker, databases, Placement and Neutron for the service nova-scheduler.

    Args:
        conf, database, overrides: as in ``resolve_server_config``.

    Raises:
        BadSettings: no nova.conf is named, or the extra for the service is not installed.
        SettingsMissing: a requested file does not exist.
    """
    nova_conf = find_nova_conf(environ, os.path.exists)
    if nova_conf is None:
        raise BadSettings("--check", "needs a nova.conf: name it with --nova-conf")
    try:
        from roost.nova.check.deployment_check import DeploymentCheck
    except ModuleNotFoundError as error:
        raise BadSettings("--check", f"needs {error.name}: {extra_hint('nova')}") from None
    from roost.nova.check.check_finding import has_errors

    loaded = check_settings(config, environ)
    found = list(_settings_findings(loaded))
    server = None
    try:
        server = resolve_server_config(config, data, environ, conf=conf, database=database, overrides=overrides)
    except BadSettings as error:
        known = {str(each) for each in loaded.problems}
        problems = (error, *error.others)
        found += [_setting("error", str(each), "correct the file") for each in problems if str(each) not in known]
    else:
        found += [_setting("warning", note) for note in server.notes if note not in loaded.dropped]
    if not has_errors(found):
        rules = loaded.settings.filter_scheduler
        found.insert(0, _setting("ok", f"no errors; {len(rules.enabled_filters):,} filters are enabled"))
    subject, read = _placement_of(server, environ)
    settings = loaded.settings if server is None else server.settings
    check = DeploymentCheck(
        nova_conf,
        settings.nova,
        clock=SystemClock(),
        has_routed_networks=settings.scheduler.query_placement_for_routed_network_aggregates,
    )
    known = {each.found for each in found}
    return found + [each for each in check.run(read, subject=subject) if each.found not in known]


def _setting(level: "Level", found: str, advice: str = "") -> "Finding":
    from roost.nova.check.check_finding import Finding

    return Finding(level=level, part="settings", found=found, advice=advice)


def _settings_findings(loaded: LoadedSettings) -> "Iterator[Finding]":
    for problem in loaded.problems:
        yield _setting("error", str(problem), "correct the file")
    for note in loaded.notes:
        if _DISCOVERY in note:
            continue  # The check of the deployment has a finding of its own.
        is_summary = any(text in note for text in _SUMMARIES)
        yield _setting("ok" if is_summary else "warning", note)
    for note in loaded.dropped:
        yield _setting("warning", note)


def _placement_of(server: ServerConfig | None, environ: Mapping[str, str]) -> "tuple[str, ReadPlacement | None]":
    """Return name and reader of the Placement that the settings select; None: the settings have errors."""
    if server is None:
        return "Placement", None
    section = server.settings.placement
    if section.remote_url:
        return "the remote Placement", partial(_read_remote, server, environ)
    return _OWN, partial(_read_own, server)


def _read_own(server: ServerConfig, aggregates: Iterable[str]) -> "PlacementPicture":
    from roost.nova.check.placement_picture import PlacementPicture, picture_of_state

    if not backends.exists(server.url) or backends.version_of(server.url) is None:
        return PlacementPicture(names={}, members={}, traits={})
    with closing(backends.open_reader(server.url, settings=server.settings.store)) as store:
        return picture_of_state(Current(store, clock=SystemClock()).state, aggregates)


def _read_remote(server: ServerConfig, environ: Mapping[str, str], aggregates: Iterable[str]) -> "PlacementPicture":
    from roost.nova.check.placement_picture import picture_of_remote

    (connection,) = open_connections(server.settings, environ, count=1)
    with closing(connection):
        return picture_of_remote(connection, aggregates)
