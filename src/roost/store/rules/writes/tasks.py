"""Tasks of instances on whole disks."""

from collections.abc import Mapping

from roost.model.writes import PutTask
from roost.store.rules.write_rule import WriteRule


def _accept(*_: object) -> None:
    """Accept it without rows: the row of work in the same item is judged."""


RULES: Mapping[type, WriteRule] = {PutTask: WriteRule(touch=_accept, judge=_accept)}
