"""``roost-placement-manage``: a replacement of ``placement-manage`` in scripts."""

import argparse
from collections.abc import Mapping

from roost import __version__
from roost.cli.placement_options import build_parser, find_database, run
from roost.errors import RoostError

_PROGRAM = "roost-placement-manage"
# Upstream's data migrations. They do nothing in Roost: every provider has a root, and every allocation a consumer.
_MIGRATIONS = ("set_root_provider_ids", "create_incomplete_consumers")
_HEAD = ("Migration", "Total Found", "Completed")
_EXIT_FAILED = 2
_EXIT_BAD_INPUT = 127


def main() -> None:
    """Run the command."""
    run(_PROGRAM, _main, failure=1)


def _main(environ: Mapping[str, str]) -> int:
    parser = build_parser(_PROGRAM)
    parser.add_argument("--version", action="version", version=__version__)
    parser.set_defaults(act=None, help_of=parser, is_complete=False)
    groups = parser.add_subparsers(title="Command")
    database = groups.add_parser("db", help="database commands")
    database.set_defaults(help_of=database, is_complete=True)
    acts = database.add_subparsers(title="subcommands", description="database commands")
    for name, act, text in (
        ("sync", _sync, "Sync the database to the current version."),
        ("version", _version, "Report the current database version."),
        ("stamp", _stamp, "Stamp the revision table with the given version."),
        ("online_data_migrations", _migrate, "Run the online data migrations."),
    ):
        sub = acts.add_parser(name, help=text, description=text)
        sub.set_defaults(act=act)
        if name == "stamp":
            sub.add_argument("to", metavar="version", help="the version to stamp")
        if name == "online_data_migrations":
            sub.add_argument("--max-count", metavar="<number>", help="maximum number of objects to consider")
    arguments = parser.parse_args()
    if arguments.act is None:
        arguments.help_of.print_help()
        return 0 if arguments.is_complete else 1
    code = arguments.act(arguments, find_database(arguments, environ))
    assert isinstance(code, int)
    return code


def _sync(_: argparse.Namespace, url: str) -> int:
    from roost.app import sync

    sync(url)
    return 0


def _version(_: argparse.Namespace, url: str) -> int:
    from roost.app import exists, version_of

    print(version_of(url) if exists(url) else None)
    return 0


def _stamp(arguments: argparse.Namespace, url: str) -> int:
    from roost.app import stamp

    stamp(url, arguments.to)
    return 0


def _migrate(arguments: argparse.Namespace, url: str) -> int:
    from roost.app import audit

    if arguments.max_count is None:
        print("Running batches of 50 until complete")
    elif not arguments.max_count.isdecimal() or not int(arguments.max_count):
        print("Must supply a positive value for max_count")
        return _EXIT_BAD_INPUT
    try:
        audit(url)
        has_failed = False
    except RoostError as error:
        for name in _MIGRATIONS:
            print(f"Error attempting to run {name}: {error}")
        has_failed = True
    print("\n".join(_table([_HEAD, *((name, "0", "0") for name in _MIGRATIONS)])))
    if has_failed:
        print("Some migrations failed unexpectedly. Check log for details.")
        return _EXIT_FAILED
    return 0


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    """Draw a framed table with centered cells."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
    lines = [
        "|" + "|".join(_center(cell, width + 2) for cell, width in zip(row, widths, strict=True)) + "|" for row in rows
    ]
    return [rule, lines[0], rule, *lines[1:], rule]


def _center(cell: str, width: int) -> str:
    left = (width - len(cell)) // 2
    return " " * left + cell + " " * (width - len(cell) - left)


if __name__ == "__main__":
    main()
