"""Nova's reasons for "No valid host was found"."""

from roost.model.evidence.decision import Decision
from roost.nova.rpc.rpc_failure import Failure, build_failure
from roost.scheduler.framework.reasons import SEARCH

TOO_FEW = "There are not enough hosts available."
# Roost's reasons that begin with these texts are also Nova's: for an unknown host, and from a request filter.
_UNKNOWN_HOST, _REQUEST_FILTER = "No such host - host: ", "Scheduling failed: "


def refusal_reason(decision: Decision) -> str:
    """Return Nova's reason for a refused decision; empty if Placement offers no candidate.

    Source:
        nova/scheduler/manager.py, select_destinations, and nova/scheduler/utils.py, resources_from_request_spec.
    """
    reason = decision.reason
    if reason.startswith(_UNKNOWN_HOST):
        return f"{reason} "  # Nova's text ends with a blank.
    if reason.startswith(_REQUEST_FILTER):
        return reason
    searched = [stage for stage in decision.stages if stage.rule == SEARCH]
    is_without_candidates = bool(searched) and searched[-1].after == 0 and decision.found == 0
    return "" if is_without_candidates or not decision.stages else TOO_FEW


def no_valid_host(reason: str) -> Failure:
    """Return Nova's exception for a request without a host.

    Args:
        reason: the end of the sentence that users see; may be empty.
    """
    message = f"No valid host was found. {reason}"
    return build_failure("NoValidHost", "nova.exception", message, reason=reason, code=500)
