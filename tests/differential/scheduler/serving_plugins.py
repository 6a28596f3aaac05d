"""Run the reference's filters and weighers as plug-ins of Roost; by the Python that has both: ``serving_plugins.py``.

Each line on the standard input is a whole pair with the names of the rules to run. Each answer is one line on the
standard output: what Roost decides by them, over columns.
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
from roost.compat.aliases import lend_names  # noqa: E402
from roost.engine.ranking import ranks  # noqa: E402
from roost.model.names import uuid_text  # noqa: E402
from roost.model.settings.roost_settings import Settings  # noqa: E402
from roost.scheduler.framework.plugin import JudgesCandidates, implements  # noqa: E402
from tests.differential.scheduler import subject  # noqa: E402

lend_names()
import datetime as dt  # noqa: E402

from nova.scheduler import filters as nova_filters  # noqa: E402
from nova.scheduler import weights as nova_weights  # noqa: E402
from oslo_utils import timeutils  # noqa: E402

Json = dict[str, Any]


class Plugins(subject.Columns):
    """A pair as columns, judged by the reference's own classes through the adapter."""

    def __init__(self, pair: Json, kinds: Json) -> None:
        super().__init__(pair)
        self._kinds = kinds
        tables = {name: dict(table) for name, table in pair["options"].items()}
        self._settings = msgspec.structs.replace(Settings(), tables=tables)
        self._join_group(pair["request"]["group"])
        self._ways_of = [host["candidates"] or [{}] for host in pair["hosts"]]

    def _join_group(self, told: Json | None) -> None:
        """Let the instances that are members of the pair's group be so in the columns, where look-ups find them."""
        for holder in self.state.holders.values():
            if told is not None and holder.instance is not None and uuid_text(holder.uuid) in told["members"]:
                holder.instance = msgspec.structs.replace(holder.instance, group_id=1)

    def rule(self, name: str) -> Any:
        """Return a class of the reference as a rule."""
        kind = adapt(self._kinds[name])
        assert kind is not None
        return kind.of_settings(None, self._settings)  # type: ignore[attr-defined]  # an adapted rule has it

    def passing(self, name: str) -> list[Any]:
        """Say of each host whether it passes a filter, or by which error the filter fails at it."""
        rule = self.rule(name)
        if self.spec.is_rebuild and not rule.run_on_rebuild:
            return [True] * len(self.view)
        return [self._verdict(rule, at) for at in range(len(self.view))]

    def _verdict(self, rule: Any, at: int) -> bool | str:
        alone = self.view.subset(np.array([at], dtype=np.intp))
        try:
            if implements(rule, JudgesCandidates):
                return any(rule.accepts(alone, self.spec, at=0, mappings=ways) for ways in self._ways_of[at])
            return bool(rule.keep(alone, self.spec)[0])
        except Exception as error:  # noqa: BLE001  (whatever it is, it is what the reference is compared by)
            return type(error).__name__

    def weights(self, name: str) -> Json:
        """Return what a weigher gives each host, or the error by which it fails."""
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
    """Answer one question."""
    try:
        pair = Plugins(question["pair"], kinds)
        return {
            "filters": {name: pair.passing(name) for name in question["filters"]},
            "weighers": {name: pair.weights(name) for name in question["weighers"]},
        }
    except Exception as error:  # noqa: BLE001
        return {"refused": f"{type(error).__name__}: {error}"}


def main() -> None:
    """Answer questions until there are no more."""
    timeutils.set_time_override(dt.datetime.fromtimestamp(subject.NOW_S, tz=dt.UTC).replace(tzinfo=None))
    made = SimpleNamespace(filters=nova_filters.all_filters(), weighers=nova_weights.all_weighers())
    kinds = {each.__name__: each for each in (*made.filters, *made.weighers)}
    print(
        json.dumps({"kinds": sorted(kinds), "modules": sorted({each.__module__ for each in kinds.values()})}),
        flush=True,
    )
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line), kinds)), flush=True)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
