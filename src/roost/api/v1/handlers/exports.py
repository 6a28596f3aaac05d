"""The whole fleet as a document, and the audit of the database."""

from roost.api.http import Response
from roost.api.v1.call import Call, json_response
from roost.api.v1.schemas.exports import AuditResult, ShownFinding
from roost.scheduler.explain import fleet_export


def export_fleet(call: Call) -> Response:
    """Return the fleet as a document, with which ``roost decide`` decides as this server does."""
    call.require_thread()
    state, now_s = call.current.state, call.agents.reader(call.current).now_s()
    return json_response(fleet_export.export_fleet(state, now_s=now_s))


def audit(call: Call) -> Response:
    """Check the tables of the database for consistency, with plain SQL.

    Fails with 409 for a database in memory, which has no tables.
    """
    call.require_thread()
    findings = [
        ShownFinding(check=each.check, subject=each.subject, problem=each.problem) for each in call.product.audit()
    ]
    return json_response(AuditResult(findings=findings))
