"""``roost-manage``: for scripts that were written for ``nova-manage placement``."""

import argparse
import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

from roost import __version__
from roost.cli.placement_options import database_asked, parser_of, run
from roost.cli.text.plain_text import shown
from roost.errors import BadRequest, BadSettings, NotFound, ReshapeFailed

_PROGRAM = "roost-manage"
_EXIT_BAD_INPUT = 127
_EXIT_FAULT = 255
_HEALED = {"healed": 0, "limit": 1, "no node": 2, "refused": 3, "nothing": 4, "device": 8}
_SYNCED = {"done": 0, "unavailable": 2, "refused": 3, "no provider": 6}
_EXIT_RESHAPE_FAILED, _EXIT_NO_NODE = 1, 2
_EXIT_AUDIT_FAILED, _EXIT_ORPHANS, _EXIT_DELETED = 1, 3, 4
# Of these a host has only so much; what else somebody holds may be of another service.
_AUDITED = ("VCPU", "MEMORY_MB", "DISK_GB", "VGPU", "PCPU", "MEM_ENCRYPTION_CONTEXT")
_AUDITED_BEGIN = "NET_BW_"


def main() -> None:
    """Run the command."""
    run(_PROGRAM, _main, failure=_EXIT_FAULT)


def _main(environ: Mapping[str, str]) -> int:
    arguments = _arguments()
    if arguments is None:
        return _EXIT_BAD_INPUT
    if arguments.act is None:
        arguments.help_of.print_help()
        return _EXIT_BAD_INPUT
    try:
        code = arguments.act(arguments, _database(arguments, environ))
    except (BadRequest, BadSettings, NotFound) as error:
        print(f"{_PROGRAM}: {shown(str(error))}", file=sys.stderr)
        return _EXIT_BAD_INPUT
    assert isinstance(code, int)
    return code


def _arguments() -> argparse.Namespace | None:
    """Return what is asked; None: it cannot be meant, and that is told. For scripts 2 means something else."""
    try:
        return _parser().parse_args()
    except SystemExit as end:
        if end.code:
            return None
        raise


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(_PROGRAM)
    parser.add_argument("--version", action="version", version=__version__)
    parser.add_argument("--config", metavar="PATH", type=Path, help="settings, a TOML file")
    parser.add_argument("--data", metavar="DIR", type=Path, help="folder of the database")
    parser.set_defaults(act=None, help_of=parser)
    groups = parser.add_subparsers(title="Command")
    placement = groups.add_parser("placement", help="what is held, and where")
    placement.set_defaults(help_of=placement)
    acts = placement.add_subparsers(title="subcommands")

    heal_allocations = acts.add_parser("heal_allocations", help="give instances the allocations that they lack")
    heal_allocations.set_defaults(act=_heal)
    heal_allocations.add_argument("--max-count", metavar="<max_count>", help="heal so many instances at most")
    heal_allocations.add_argument("--instance", metavar="<uuid>", help="only this one")
    heal_allocations.add_argument("--cell", metavar="<cell>", help="only those of this cell")
    heal_allocations.add_argument("--dry-run", action="store_true", help="say what would be done")
    heal_allocations.add_argument("--force", action="store_true", help="with --instance: replace what it holds")
    heal_allocations.add_argument(
        "--skip-port-allocations", action="store_true", help="without effect: ports hold nothing here"
    )

    auditing = acts.add_parser("audit", help="find allocations of nobody")
    auditing.set_defaults(act=_audit)
    auditing.add_argument("--delete", action="store_true", help="give them back")
    auditing.add_argument("--resource_provider", metavar="<uuid>", help="only those on this provider")

    syncing = acts.add_parser("sync_aggregates", help="put providers into the aggregates of their hosts")
    syncing.set_defaults(act=_sync)

    migrate_inventory = acts.add_parser(
        "migrate_compute_inventory", help="move inventories to where the driver wants them"
    )
    migrate_inventory.set_defaults(act=_migrate)
    migrate_inventory.add_argument("--driver", metavar="<name>", required=True, help="the driver of the host's agent")
    migrate_inventory.add_argument("--option", metavar="KEY=VALUE", action="append", default=[], help="of the driver")
    migrate_inventory.add_argument("--term", metavar="KEY=VALUE", action="append", default=[], help="of the host")
    migrate_inventory.add_argument("--host", metavar="<name>", default=socket.gethostname(), help="the service")
    migrate_inventory.add_argument("--node", metavar="<name>", action="append", default=[], help="only this node")
    migrate_inventory.add_argument(
        "--provider-config", metavar="DIR", default="", help="folder of provider config files"
    )
    for act in (heal_allocations, auditing, syncing, migrate_inventory):
        act.add_argument("--verbose", action="store_true", help="say what is done")
    return parser


def _database(arguments: argparse.Namespace, environ: Mapping[str, str]) -> str:
    """Return the database that a ``placement.conf`` names where one is given, else that of the settings."""
    from roost.app import database_of

    if arguments.config_file or arguments.config_dir:
        return database_asked(arguments, environ)
    return database_of(arguments.config, arguments.data, os.environ)


def _heal(arguments: argparse.Namespace, url: str) -> int:
    from roost.app import settings_of
    from roost.direct import heal_allocations

    most = _positive(arguments.max_count)
    if arguments.force and not arguments.instance:
        raise BadRequest("--force needs --instance")
    if arguments.instance and arguments.cell is not None:
        raise BadRequest("--instance and --cell cannot be given together")
    if arguments.instance and most is not None:
        raise BadRequest("--instance and --max-count cannot be given together")
    asked = heal_allocations.Asked(
        instance=arguments.instance,
        cell=arguments.cell,
        most=most,
        is_forced=arguments.force,
        is_dry_run=arguments.dry_run,
    )
    tell = _say if arguments.verbose or arguments.dry_run else _nothing
    found = heal_allocations.heal(url, settings_of(arguments.config, os.environ), asked, tell=tell)
    _complain(found.problem)
    if found.left:
        _complain(f"{found.left} instances after it were not looked at; --instance <uuid> heals one of them")
    _say(f"{found.healed} instances {'would be ' if arguments.dry_run else ''}healed")
    return _HEALED["nothing"] if arguments.dry_run else _HEALED[found.verdict]


def _audit(arguments: argparse.Namespace, url: str) -> int:
    from roost.direct import delete_orphans

    found = delete_orphans.find(url, provider=arguments.resource_provider, is_audited=_is_audited)
    for orphan in found:
        _say(f"consumer {orphan.consumer} {orphan.problem}")
    if not found:
        if arguments.verbose:
            _say("no allocation is of nobody")
        return 0
    if not arguments.delete:
        return _EXIT_ORPHANS
    left = delete_orphans.delete(url, found)
    _complain(left)
    return _EXIT_AUDIT_FAILED if left else _EXIT_DELETED


def _sync(arguments: argparse.Namespace, url: str) -> int:
    from roost.direct.sync_aggregates import sync_aggregates

    found = sync_aggregates(url, tell=_say if arguments.verbose else _nothing)
    _complain(found.problem)
    return _SYNCED[found.verdict]


def _migrate(arguments: argparse.Namespace, url: str) -> int:
    from roost.app import settings_of
    from roost.direct import migrate_inventory

    asked = migrate_inventory.migrating(
        settings_of(arguments.config, os.environ).agent,
        host=arguments.host,
        driver=arguments.driver,
        options=arguments.option,
        terms=arguments.term,
        provider_config=arguments.provider_config,
        nodes=arguments.node,
    )
    try:
        for each in migrate_inventory.migrate_inventory(url, asked, warn=_complain):
            if each.is_reshaped or arguments.verbose:
                _say(f"{each.node}: {'moved' if each.is_reshaped else 'nothing to move'}")
    except ReshapeFailed as error:
        _complain(str(error))
        return _EXIT_RESHAPE_FAILED
    except NotFound as error:
        _complain(str(error))
        return _EXIT_NO_NODE
    return 0


def _is_audited(resource_class: str) -> bool:
    return resource_class in _AUDITED or resource_class.startswith(_AUDITED_BEGIN)


def _positive(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal() or not int(text):
        raise BadRequest(f"--max-count must be a whole number of 1 or more, got {text!r}")
    return int(text)


def _nothing(_: str) -> None:
    """Say nothing."""


def _say(sentence: str) -> None:
    print(shown(sentence))


def _complain(sentence: str) -> None:
    if sentence:
        print(f"{_PROGRAM}: {shown(sentence)}", file=sys.stderr)


if __name__ == "__main__":
    main()
