"""Operations with server groups."""

from collections import Counter
from collections.abc import Iterable

from tests.bed.cloud_api import Json
from tests.bed.records import Outcome
from tests.bed.session import Session, statuses


def create_group(session: Session, name: str, policy: str, **rules: int) -> str:
    """Create a server group; return its uuid."""
    body: Json = {"name": name, "policy": policy}
    if rules:
        body["rules"] = rules
    return str(session.nova("POST", "/os-server-groups", {"server_group": body})["server_group"]["id"])


def boot_apart(session: Session) -> dict[str, Outcome]:
    """Boot one member more than there are hosts, in a group with the policy anti-affinity."""
    hints = {"group": create_group(session, "apart", "anti-affinity")}
    outcomes = {f"member {each}": session.boot(f"apart-{each}", hints=hints) for each in range(4)}
    return outcomes | {"hosts": Outcome(facts=_spread(outcomes.values()))}


def boot_together(session: Session) -> dict[str, Outcome]:
    """Boot three members at once in a group with the policy affinity, and six with at most two on a host."""
    near = {"group": create_group(session, "near", "affinity")}
    together = [session.observe(name) for name in session.create("near", count=3, hints=near)]
    pairs = {"group": create_group(session, "pairs", "anti-affinity", max_server_per_host=2)}
    six = [session.observe(name) for name in session.create("pair", count=6, hints=pairs)]
    return {
        "affinity": Outcome(facts=[_spread(together), statuses(together)]),
        "two on a host": Outcome(facts=[_spread(six), statuses(six)]),
        "one too many": session.boot("pair-more", hints=pairs),
    }


def _spread(outcomes: Iterable[Outcome]) -> list[int]:
    """Return the numbers of members by host, without the names of hosts."""
    return sorted(Counter(outcome.host for outcome in outcomes if outcome.host).values())
