"""``roost-manage``: a replacement of ``nova-manage placement`` in scripts."""

import argparse
import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

from roost import __version__
from roost.cli.placement_options import build_parser, find_database, run
from roost.cli.text.plain_text import escape_text
from roost.errors import BadRequest, BadSettings, NotFound, ReshapeFailed

_PROGRAM = "roost-manage"
_EXIT_BAD_INPUT = 127
_EXIT_FAULT = 255
_HEAL_EXIT_CODES = {"healed": 0, "limit": 1, "no node": 2, "refused": 3, "nothing": 4, "device": 8}
_SYNC_EXIT_CODES = {"done": 0, "unavailable": 2, "refused": 3, "no provider": 6}
_EXIT_RESHAPE_FAILED, _EXIT_NO_NODE = 1, 2
_EXIT_AUDIT_FAILED, _EXIT_ORPHANS, _EXIT_DELETED = 1, 3, 4
# Resource classes of hosts. Allocations of other classes may belong to other OpenStack services.
_AUDIT_CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB", "VGPU", "PCPU", "MEM_ENCRYPTION_CONTEXT")
_AUDIT_PREFIX = "NET_BW_"


def main() -> None:
    """Run the command."""
    run(_PROGRAM, _main, failure=_EXIT_FAULT)


def _main(environ: Mapping[str, str]) -> int:
    arguments = _parse_arguments()
    if arguments is None:
        return _EXIT_BAD_INPUT
    if arguments.act is None:
        arguments.help_of.print_help()
        return _EXIT_BAD_INPUT
    try:
        code = arguments.act(arguments, _database(arguments, environ))
    except (BadRequest, BadSettings, NotFound) as error:
        print(f"{_PROGRAM}: {escape_text(str(error))}", file=sys.stderr)
        return _EXIT_BAD_INPUT
    assert isinstance(code, int)
    return code


def _parse_arguments() -> argparse.Namespace | None:
    """Parse the command line; return None after an error, which argparse prints.

    argparse would exit with code 2, which has another meaning here.
    """
    try:
        return _build_parser().parse_args()
    except SystemExit as end:
        if end.code:
            return None
        raise


def _build_parser() -> argparse.ArgumentParser:
    parser = build_parser(_PROGRAM)
    parser.add_argument("--version", action="version", version=__version__)
    parser.add_argument("--config", metavar="PATH", type=Path, help="settings file, TOML")
    parser.add_argument("--data", metavar="DIR", type=Path, help="folder of the database")
    parser.set_defaults(act=None, help_of=parser)
    groups = parser.add_subparsers(title="Command")
    placement = groups.add_parser("placement", help="repair allocations and inventories")
    placement.set_defaults(help_of=placement)
    acts = placement.add_subparsers(title="subcommands")

    heal_allocations = acts.add_parser("heal_allocations", help="create missing allocations of instances")
    heal_allocations.set_defaults(act=_heal)
    heal_allocations.add_argument("--max-count", metavar="<max_count>", help="maximum number of instances to heal")
    heal_allocations.add_argument("--instance", metavar="<uuid>", help="heal only this instance")
    heal_allocations.add_argument("--cell", metavar="<cell>", help="heal only instances of this cell")
    heal_allocations.add_argument("--dry-run", action="store_true", help="print the changes, and make none")
    heal_allocations.add_argument("--force", action="store_true", help="with --instance: replace its allocations")
    heal_allocations.add_argument(
        "--skip-port-allocations", action="store_true", help="no effect: ports have no allocations"
    )

    audit = acts.add_parser("audit", help="find orphaned allocations")
    audit.set_defaults(act=_audit)
    audit.add_argument("--delete", action="store_true", help="delete the orphaned allocations")
    audit.add_argument("--resource_provider", metavar="<uuid>", help="only allocations on this provider")

    sync_aggregates = acts.add_parser("sync_aggregates", help="add providers to the aggregates of their hosts")
    sync_aggregates.set_defaults(act=_sync)

    migrate_inventory = acts.add_parser("migrate_compute_inventory", help="reshape inventories as the driver requires")
    migrate_inventory.set_defaults(act=_migrate)
    migrate_inventory.add_argument("--driver", metavar="<name>", required=True, help="driver of the host's agent")
    migrate_inventory.add_argument(
        "--option", metavar="KEY=VALUE", action="append", default=[], help="option of the driver; repeatable"
    )
    migrate_inventory.add_argument(
        "--term",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="reserved amount or ratio of the host, such as reserved_host_cpus=2; repeatable",
    )
    migrate_inventory.add_argument(
        "--host",
        metavar="<name>",
        default=socket.gethostname(),
        help="name of the service (default: this machine's name)",
    )
    migrate_inventory.add_argument(
        "--node", metavar="<name>", action="append", default=[], help="only this node; repeatable"
    )
    migrate_inventory.add_argument(
        "--provider-config", metavar="DIR", default="", help="folder of provider config files"
    )
    for act in (heal_allocations, audit, sync_aggregates, migrate_inventory):
        act.add_argument("--verbose", action="store_true", help="print each step")
    return parser


def _database(arguments: argparse.Namespace, environ: Mapping[str, str]) -> str:
    """Return the database of the given ``placement.conf``, else of the settings."""
    from roost.app import database_of

    if arguments.config_file or arguments.config_dir:
        return find_database(arguments, environ)
    return database_of(arguments.config, arguments.data, os.environ)


def _heal(arguments: argparse.Namespace, url: str) -> int:
    from roost.app import settings_of
    from roost.direct import heal_allocations

    max_count = _parse_max_count(arguments.max_count)
    if arguments.force and not arguments.instance:
        raise BadRequest("--force needs --instance")
    if arguments.instance and arguments.cell is not None:
        raise BadRequest("--instance and --cell cannot be combined")
    if arguments.instance and max_count is not None:
        raise BadRequest("--instance and --max-count cannot be combined")
    request = heal_allocations.HealOptions(
        instance=arguments.instance,
        cell=arguments.cell,
        max_count=max_count,
        is_forced=arguments.force,
        is_dry_run=arguments.dry_run,
    )
    report = _print if arguments.verbose or arguments.dry_run else _ignore
    result = heal_allocations.heal(url, settings_of(arguments.config, os.environ), request, echo=report)
    _print_error(result.problem)
    if result.unchecked:
        _print_error(f"{result.unchecked} further instances were not checked; --instance <uuid> heals one of them")
    _print(f"{result.healed} instances {'would be ' if arguments.dry_run else ''}healed")
    return _HEAL_EXIT_CODES["nothing"] if arguments.dry_run else _HEAL_EXIT_CODES[result.verdict]


def _audit(arguments: argparse.Namespace, url: str) -> int:
    from roost.direct import delete_orphans

    orphans = delete_orphans.find(url, provider=arguments.resource_provider, is_audited=_is_host_resource)
    for orphan in orphans:
        _print(f"consumer {orphan.consumer} {orphan.problem}")
    if not orphans:
        if arguments.verbose:
            _print("no orphaned allocations")
        return 0
    if not arguments.delete:
        return _EXIT_ORPHANS
    problem = delete_orphans.delete(url, orphans)
    _print_error(problem)
    return _EXIT_AUDIT_FAILED if problem else _EXIT_DELETED


def _sync(arguments: argparse.Namespace, url: str) -> int:
    from roost.direct.sync_aggregates import sync_aggregates

    result = sync_aggregates(url, echo=_print if arguments.verbose else _ignore)
    _print_error(result.problem)
    return _SYNC_EXIT_CODES[result.verdict]


def _migrate(arguments: argparse.Namespace, url: str) -> int:
    from roost.app import settings_of
    from roost.direct import migrate_inventory

    request = migrate_inventory.read_options(
        settings_of(arguments.config, os.environ).agent,
        host=arguments.host,
        driver=arguments.driver,
        options=arguments.option,
        terms=arguments.term,
        provider_config=arguments.provider_config,
        nodes=arguments.node,
    )
    try:
        for result in migrate_inventory.migrate_inventory(url, request, warn=_print_error):
            if result.is_reshaped or arguments.verbose:
                _print(f"{result.node}: {'moved' if result.is_reshaped else 'nothing to move'}")
    except ReshapeFailed as error:
        _print_error(str(error))
        return _EXIT_RESHAPE_FAILED
    except NotFound as error:
        _print_error(str(error))
        return _EXIT_NO_NODE
    return 0


def _is_host_resource(resource_class: str) -> bool:
    return resource_class in _AUDIT_CLASSES or resource_class.startswith(_AUDIT_PREFIX)


def _parse_max_count(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal() or not int(text):
        raise BadRequest(f"--max-count must be a whole number of 1 or more, got {text!r}")
    return int(text)


def _ignore(_: str) -> None:
    """Print nothing."""


def _print(sentence: str) -> None:
    print(escape_text(sentence))


def _print_error(sentence: str) -> None:
    if sentence:
        print(f"{_PROGRAM}: {escape_text(sentence)}", file=sys.stderr)


if __name__ == "__main__":
    main()
