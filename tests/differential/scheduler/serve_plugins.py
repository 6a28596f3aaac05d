"""Run the reference's filters and weighers as plug-ins of Roost, with a Python that has both: ``serve_plugins.py``.

Each line on the standard input is a whole pair with the names of the rules to run. Each line on the standard output
has the results of these rules in Roost, on columns.
"""

import contextlib
import json
import logging
import sys
import warnings
from types import SimpleNamespace
from typing import Any

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)

import msgspec  # noqa: E402
import numpy as np  # noqa: E402

from roost.compat.adapter import adapt  # noqa: E402
from roost.compat.aliases import install_aliases  # noqa: E402
from roost.engine.ranking import ranks  # noqa: E402
from roost.model.names import uuid_text  # noqa: E402
from roost.model.settings.roost_settings import Settings  # noqa: E402
from roost.scheduler.framework.plugin import JudgesCandidates, implements  # noqa: E402
from tests.differential.scheduler import subject  # noqa: E402

install_aliases()
import datetime as dt  # noqa: E402

from nova.scheduler import filters as nova_filters  # noqa: E402
from nova.scheduler import weights as nova_weights  # noqa: E402
from oslo_utils import timeutils  # noqa: E402

Json = dict[str, Any]


class Plugins(subject.Columns):
    """A pair as columns, for the reference's own classes through the adapter."""

    def __init__(self, pair: Json, kinds: Json) -> None:
        super().__init__(pair)
        self._kinds = kinds
        tables = {name: dict(table) for name, table in pair["options"].items()}
        self._settings = msgspec.structs.replace(Settings(), tables=tables)
        self._join_group(pair["request"]["group"])
        self._ways_of = [host["candidates"] or [{}] for host in pair["hosts"]]

    def _join_group(self, server_group: Json | None) -> None:
        """Set the group of the member instances in the columns, so that lookups find them."""
        for holder in self.state.holders.values():
            if server_group is None or holder.instance is None:
                continue
            if uuid_text(holder.uuid) in server_group["members"]:
                holder.instance = msgspec.structs.replace(holder.instance, group_id=1)

    def rule(self, name: str) -> Any:
        """Return a class of the reference as a rule."""
        kind = adapt(self._kinds[name])
        assert kind is not None
        return kind.of_settings(None, self._settings)  # type: ignore[attr-defined]  # an adapted rule has it

    def passing(self, name: str) -> list[Any]:
        """Return for each host whether it passes a filter, or the name of the filter's error."""
        rule = self.rule(name)
        if self.spec.is_rebuild and not rule.run_on_rebuild:
            return [True] * len(self.view)
        return [self._verdict(rule, at) for at in range(len(self.view))]

    def _verdict(self, rule: Any, at: int) -> bool | str:
        single_host = self.view.subset(np.array([at], dtype=np.intp))
        try:
            if implements(rule, JudgesCandidates):
                return any(rule.accepts(single_host, self.spec, at=0, mappings=ways) for ways in self._ways_of[at])
            return bool(rule.keep(single_host, self.spec)[0])
        except Exception as error:  # noqa: BLE001  (the comparison includes the name of the error)
            return type(error).__name__

    def weights(self, name: str) -> Json:
        """Return a weigher's weights of all hosts, or the name of its error."""
        rule = self.rule(name)
        try:
            raw = ranks.clamp(rule.raw(self.view, self.spec), minval=rule.minval, maxval=rule.maxval)
            multipliers = rule.multipliers(self.view, self.spec)
        except Exception as error:  # noqa: BLE001
            return {"error": type(error).__name__}
        scale = ranks.scale_of(raw, weigher=name, minval=rule.minval, maxval=rule.maxval, multiplier=1.0)
        normalised = ranks.normalise(raw, low=scale.low, high=scale.high)
        totals = normalised * multipliers if len(raw) > 1 else np.zeros(len(raw))
        return {"raw": raw.tolist(), "normalised": normalised.tolist(), "totals": totals.tolist()}


def answer(question: Json, kinds: Json) -> Json:
    """Run the rules of one input line."""
    try:
        pair = Plugins(question["pair"], kinds)
        return {
            "filters": {name: pair.passing(name) for name in question["filters"]},
            "weighers": {name: pair.weights(name) for name in question["weighers"]},
        }
    except Exception as error:  # noqa: BLE001
        return {"refused": f"{type(error).__name__}: {error}"}


def main() -> None:
    """Answer each line of the standard input."""
    timeutils.set_time_override(dt.datetime.fromtimestamp(subject.NOW_S, tz=dt.UTC).replace(tzinfo=None))
    classes = SimpleNamespace(filters=nova_filters.all_filters(), weighers=nova_weights.all_weighers())
    kinds = {each.__name__: each for each in (*classes.filters, *classes.weighers)}
    print(
        json.dumps({"kinds": sorted(kinds), "modules": sorted({each.__module__ for each in kinds.values()})}),
        flush=True,
    )
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line), kinds)), flush=True)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
