"""Settings in force: show."""

from typing import Any

from roost.api.http import Response
from roost.api.v1.call import Call, json_response
from roost.api.v1.schemas.exports import ShownRule, ShownSettings
from roost.errors import Conflict
from roost.scheduler.framework.plugin import Filter, Weigher


def show(call: Call) -> Response:
    """Show the settings in force with their sources, and the enabled rules in order; secrets are masked.

    Fails with 409 in a process without a configuration of its own.
    """
    if call.report_settings is None:
        raise Conflict("this process does not know the sources of its settings", problem_type="not-supported")
    product = call.product
    report = call.report_settings(product.settings)
    rules = product.rules
    return json_response(
        ShownSettings(
            fingerprint=product.settings.fingerprint().hex(),
            rules=[
                *(_show(rule, None) for rule in rules.filters),
                *(_show(rule, rule.multiplier) for rule in rules.weighers),
            ],
            settings=report.rows,
            needs_restart=report.needs_restart,
        )
    )


def _show(rule: Filter | Weigher, multiplier: float | None) -> ShownRule:
    options: Any = rule.options
    return ShownRule(
        kind="filter" if multiplier is None else "weigher",
        name=rule.name,
        nova_name=rule.nova_name,
        multiplier=multiplier,
        settings=[f"{rule.section}.{key}" for key in options.__struct_fields__],
    )
