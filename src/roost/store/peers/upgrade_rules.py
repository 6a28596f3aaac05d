"""Upgrades beside processes: the migrations that may run, and the processes that forbid one."""

from collections.abc import Sequence
from itertools import takewhile

from roost.errors import StoreBusy, StoreOutdated
from roost.ports import LiveWriter
from roost.store import migrate
from roost.store.rules.schema import SCHEMA_VERSION

_NAMED_MAX = 10  # in a message


def last_expansion(version: str | None, *, label: str) -> str | None:
    """Return the last migration that may run beside processes; None: none is missing.

    Args:
        version: of the database.
        label: of the database, in messages.

    Raises:
        StoreOutdated: another upgrade comes first.
    """
    missing = migrate.missing_after(version or "")
    first = list(takewhile(lambda each: each.phase == "expand", missing))
    if any(each.phase != "contract" for each in missing[len(first) :]):
        raise StoreOutdated(
            f"{label} has schema {version or 'none'}: the step to {missing[0].version} cannot run "
            "beside processes: run `roost db upgrade` without --expand"
        )
    return first[-1].version if first else None


def check_no_older(live: Sequence[LiveWriter], version: str, *, label: str) -> None:
    """Refuse an upgrade beside processes of an older program, unless another process has just made it.

    Args:
        live: the live processes.
        version: of the database.
        label: of the database, in messages.

    Raises:
        StoreBusy: there are such processes.
    """
    older = [_describe(writer) for writer in live if writer.schema < SCHEMA_VERSION]
    if version < SCHEMA_VERSION and older:
        can_expand = migrate.missing_after(version)[0].phase == "expand"
        more = "; `roost db upgrade --expand` does not need that" if can_expand else ""
        raise StoreBusy(
            f"processes of an older Roost use {label}: {_join(older)}: replace or stop all of them, then upgrade{more}"
        )


def _describe(writer: LiveWriter) -> str:
    return f"{writer.version or 'an unknown version'} on {writer.machine}"


def _join(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - _NAMED_MAX} more" if len(texts) > _NAMED_MAX else ""
    return f"{', '.join(texts[:_NAMED_MAX])}{more}"
