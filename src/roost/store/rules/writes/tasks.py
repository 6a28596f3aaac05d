"""I/O tasks of instances."""

from collections.abc import Mapping

from roost.model.writes import PutTask
from roost.store.rules.write_rule import WriteRule


def _accept(*_: object) -> None:
    """Accept without rows: the row of work in the same item is judged instead."""


RULES: Mapping[type, WriteRule] = {PutTask: WriteRule(collect=_accept, judge=_accept)}
