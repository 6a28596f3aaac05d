"""How long a host is waited for, and what is made of its silence."""

from roost.conductor.step import View, answer_of, is_open

# A host that could not do what it must is asked again after so many seconds; so is one looked for that is away.
PAUSE_S = 10.0


def silent(host: str) -> str:
    """Say that nothing is to be expected of a host."""
    return f"the agent of {host} does not answer"


def failure(view: View, *, limit_at_s: float, limit_s: float) -> str | None:
    """Say what went wrong with the last order; empty: it was done. None: it is waited for.

    Args:
        limit_at_s: until then its host may take its time.
        limit_s: as the settings say how long that is.
    """
    order = view.orders[-1]
    if not is_open(order):
        answer = answer_of(order)
        return "" if answer.outcome == "ok" else answer.problem or f"{order.host} said no more than {answer.outcome}"
    if view.is_away(order.host):
        return silent(order.host)
    return None if view.now_s < limit_at_s else f"{order.host} did not answer within {limit_s:,.0f} s"


def may_be_on(view: View) -> bool:
    """Say whether an instance may run whose status says that it does not: what was not answered may be done."""
    return bool(view.status.fault)
