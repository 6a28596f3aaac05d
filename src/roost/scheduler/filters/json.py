"""json: hosts that satisfy an expression."""

from collections.abc import Hashable

import numpy as np

from roost.engine.columns.types import Mask
from roost.errors import BadRequest
from roost.scheduler.framework.base_rule import BaseFilter
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import NoOptions, Reads
from roost.scheduler.framework.spec import Spec
from roost.scheduler.rule_support.expressions import Operation, judge, parse, paths, reads_use, values

_HINT = "query"
# Upper bound on the characters of a query in messages.
_TEXT_MAX = 200


class Json(BaseFilter[NoOptions]):
    """Keep hosts that satisfy the expression in the hint ``query``; see ``rule_support.expressions``.

    The filter rejects a host if the expression compares values without an order, such as a number with text. In Nova
    the request fails.

    Source:
        nova/scheduler/filters/json_filter.py.
    """

    nova_name = "JsonFilter"
    hints = ("query",)

    def check(self, spec: Spec) -> None:
        """Parse the query.

        Raises:
            BadRequest: it is not a valid expression.
        """
        _parse_hint(spec)

    def reads(self, spec: Spec) -> Reads:
        """Return "use" if the query reads values that change with claims, else "facts"."""
        expression = _parse_hint(spec)
        return "use" if expression is not None and reads_use(expression) else "facts"

    def concerns(self, spec: Spec) -> bool:
        """Return whether the request has the hint ``query``."""
        return bool(spec.hint(_HINT))

    def verdict_key(self, spec: Spec) -> Hashable:
        """Return the verdict key: the query."""
        return spec.hint(_HINT)

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Keep hosts that satisfy the query; keep all hosts if it is empty."""
        expression = _parse_hint(spec)
        return np.ones(len(hosts), dtype=np.bool_) if expression is None else judge(hosts, expression)[0]

    def host_reasons(self, hosts: HostView, spec: Spec) -> list[str]:
        """Return each host's values for the attributes in the query."""
        expression = _parse_hint(spec)
        read = [] if expression is None else list(dict.fromkeys(paths(expression)))
        columns = [[f"{'.'.join(path.parts)} {_format_value(each)}" for each in values(hosts, path)] for path in read]
        return [f"has {', '.join(has)}" for has in zip(*columns, strict=True)] or [""] * len(hosts)

    def warnings(self, hosts: HostView, spec: Spec) -> list[str]:
        """Warn if the query compares values without an order on any host."""
        expression = _parse_hint(spec)
        if expression is None or not (judge(hosts, expression)[1] & hosts.alive()).any():
            return []
        text = (spec.hint(_HINT) or "")[:_TEXT_MAX]
        problem = "compares values without an order, such as a number with text; such hosts are rejected"
        return [f"the hint query={text!r} {problem}"]

    def reason(self, spec: Spec) -> str:
        """Describe the rejected hosts."""
        return f"do not match the hint query: {(spec.hint(_HINT) or '')[:_TEXT_MAX]}"


def _parse_hint(spec: Spec) -> Operation | None:
    text = spec.hint(_HINT)
    try:
        return parse(text) if text else None
    except ValueError as error:
        raise BadRequest(f"the hint query={(text or '')[:_TEXT_MAX]!r} {error}") from None


def _format_value(value: object) -> str:
    if value is None:
        return "unknown"
    return f"{value:,.12g}" if isinstance(value, float) else str(value)[:_TEXT_MAX]
