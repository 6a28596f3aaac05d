"""``roost-placement-status``: a replacement for ``placement-status`` in scripts."""

import json
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from roost.cli.placement_options import build_parser, configuration_files, find_database, run

_PROGRAM = "roost-placement-status"
_SUCCESS, _WARNING, _FAILURE = range(3)  # the exit code is the highest result of the checks
_EXIT_ERROR = 255
_WORDS = ("Success", "Warning", "Failure")
_TITLE = "Upgrade Check Results"
_WIDTH = 60


class _CheckResult(NamedTuple):
    name: str
    result: int
    details: str | None = None


def main() -> None:
    """Run the command."""
    run(_PROGRAM, _main, failure=_EXIT_ERROR)


def _main(environ: Mapping[str, str]) -> int:
    parser = build_parser(_PROGRAM)
    groups = parser.add_subparsers(metavar="command", required=True)
    upgrade = groups.add_parser("upgrade", help="check that this version can start")
    upgrade.add_argument("act", choices=("check",), metavar="check")
    upgrade.add_argument("--json", dest="is_json", action="store_true", help="print the results as JSON")
    arguments = parser.parse_args()
    url, files = find_database(arguments, environ), configuration_files(arguments, environ)
    checks = [*_check_tables(url), _check_policy(files)]
    if arguments.is_json:
        results = [{"check": check.name, "result": check.result, "details": check.details} for check in checks]
        print(json.dumps({"name": _TITLE, "checks": results}))
    else:
        print("\n".join(_draw_table(checks)))
    return max(check.result for check in checks)


def _check_tables(url: str) -> list[_CheckResult]:
    """Check that every provider has its root, and every allocation its consumer."""
    from roost.app import audit

    findings = audit(url)
    roots = [finding for finding in findings if finding.check == "tree"]
    orphans = [finding for finding in findings if finding.check == "ownerless allocation"]
    return [
        _CheckResult(
            "Missing Root Provider IDs",
            _FAILURE if roots else _SUCCESS,
            f"{roots[0].subject} {roots[0].problem}. Run `roost audit`." if roots else None,
        ),
        _CheckResult(
            "Incomplete Consumers",
            _WARNING if orphans else _SUCCESS,
            f"There are {len(orphans)} allocations without consumers. Run `roost audit`." if orphans else None,
        ),
    ]


def _check_policy(files: Sequence[Path]) -> _CheckResult:
    """Check that the policy file, if there is one, is not JSON."""
    from roost.compat.placement_conf import policy_file_of

    path = policy_file_of(files)
    name = "Policy File JSON to YAML Migration"
    if path is None or not _is_json(path):
        return _CheckResult(name, _SUCCESS)
    return _CheckResult(
        name,
        _FAILURE,
        "Your policy file is JSON-formatted which is deprecated. You need to switch to YAML-formatted file.",
    )


def _is_json(path: Path) -> bool:
    try:
        json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return True


def _draw_table(checks: Sequence[_CheckResult]) -> list[str]:
    """Draw the table: one cell per check, as wide as the longest line."""
    cells = [[f"Check: {check.name}", f"Result: {_WORDS[check.result]}", *_details(check)] for check in checks]
    width = max(len(line) for cell in ([_TITLE], *cells) for line in cell)
    rule = f"+{'-' * (width + 2)}+"
    lines = [rule]
    for cell in ([_TITLE], *cells):
        lines += [*(f"| {line.ljust(width)} |" for line in cell), rule]
    return lines


def _details(check: _CheckResult) -> list[str]:
    return textwrap.wrap(f"Details: {check.details}", _WIDTH, subsequent_indent="  ")


if __name__ == "__main__":
    main()
