"""Common code of the replacements of upstream commands: the configuration options, and the database they select."""

import argparse
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path

from roost.cli.text.plain_text import escape_text
from roost.errors import BadSettings, RoostError

# Logging options of upstream, accepted for existing scripts. These commands have no log.
_WITHOUT_EFFECT = (
    "--debug",
    "--nodebug",
    "--use-journal",
    "--nouse-journal",
    "--use-json",
    "--nouse-json",
    "--use-syslog",
    "--nouse-syslog",
)
_WITH_VALUE_WITHOUT_EFFECT = (
    ("--log-config-append", "--log-config"),
    ("--log-date-format",),
    ("--log-dir", "--logdir"),
    ("--log-file", "--logfile"),
    ("--syslog-log-facility",),
)
_CONNECTION = "OS_PLACEMENT_DATABASE__CONNECTION"


def build_parser(program: str) -> argparse.ArgumentParser:
    """Return a parser with the options for the configuration files."""
    parser = argparse.ArgumentParser(prog=program)
    parser.add_argument("--config-file", metavar="PATH", action="append", default=[], help="a placement.conf")
    parser.add_argument("--config-dir", metavar="DIR", action="append", default=[], help="a folder of *.conf files")
    for name in _WITHOUT_EFFECT:
        short = ["-d"] if name == "--debug" else []
        parser.add_argument(name, *short, action="store_true", help=argparse.SUPPRESS)
    for names in _WITH_VALUE_WITHOUT_EFFECT:
        parser.add_argument(*names, help=argparse.SUPPRESS)
    return parser


def configuration_files(arguments: argparse.Namespace, environ: Mapping[str, str]) -> list[Path]:
    """Return the files to read, in order: the given ones, else the first that exists in the usual places."""
    files = [Path(name) for name in arguments.config_file]
    for name in arguments.config_dir:
        files += sorted(Path(name).glob("*.conf"))
    if files:
        return files
    folders = [Path(environ[name]) for name in ("OS_PLACEMENT_CONFIG_DIR",) if environ.get(name)]
    home = environ.get("HOME")
    folders += [Path(home) / ".placement", Path(home)] if home else []
    usual = [folder / "placement.conf" for folder in (*folders, Path("/etc/placement"), Path("/etc"))]
    return [path for path in usual if path.is_file()][:1]


def find_database(arguments: argparse.Namespace, environ: Mapping[str, str]) -> str:
    """Return the database URL of the configuration.

    Raises:
        BadSettings: the configuration has no URL, or the URL of an unsupported database.
    """
    from roost.compat.placement_conf import database_of_files, database_url
    from roost.store.backends import backend_of

    if environ.get(_CONNECTION):
        url = database_url(environ[_CONNECTION])
    else:
        files = configuration_files(arguments, environ)
        if not files:
            raise BadSettings("placement.conf", "not found: give one with --config-file")
        url = database_of_files(files)
    backend_of(url)
    return url


def run(program: str, main: Callable[[Mapping[str, str]], int], *, failure: int) -> None:
    """Run ``main`` and exit with its result. Print an error as one sentence on standard error.

    Args:
        failure: the exit code of errors.
    """
    try:
        code = main(os.environ)
    except RoostError as error:
        print(f"{program}: {escape_text(str(error))}", file=sys.stderr)
        code = failure
    except Exception:  # noqa: BLE001  # Python would exit with 1, which can have another meaning here.
        traceback.print_exc()
        code = failure
    sys.exit(code)
