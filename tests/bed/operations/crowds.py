"""Operations with many servers at once, and the end."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.bed.conf_files import GADGET, GADGETS, GOLD_HOSTS
from tests.bed.records import Amounts, Outcome, add_amounts
from tests.bed.session import Session, statuses

CALLERS = 8
CROWD = 30
_CLAIMANTS = 12
_DELETE_S = 300.0


def boot_at_once(session: Session, names: Sequence[str], flavor: str = "tiny", **fields: str) -> list[Outcome]:
    """Boot many servers from several callers at the same time; return their last observations."""
    with ThreadPoolExecutor(CALLERS) as pool:
        list(pool.map(lambda name: session.create(name, flavor, count=1, hints=None, **fields), names))
        return list(pool.map(lambda name: _brief(session, name), names))


def _brief(session: Session, name: str) -> Outcome:
    server = session.wait_for(name)
    return Outcome(status=server["status"], host=server["OS-EXT-SRV-ATTR:host"] or "")


def run_out(session: Session) -> dict[str, Outcome]:
    """Boot more servers at once than there are units of a class."""
    free = GADGETS * len(GOLD_HOSTS) - _gadgets(session)
    seen = boot_at_once(session, [f"run-out-{each}" for each in range(_CLAIMANTS)], "gadget")
    facts = {"room": free, "granted": statuses(seen).get("ACTIVE", 0), "boots": len(seen)}
    return {"gadgets": Outcome(facts=facts), "statuses": Outcome(facts=sorted(statuses(seen)))}


def _gadgets(session: Session) -> int:
    return add_amounts(session.usages(*GOLD_HOSTS).values()).get(GADGET, 0)


def boot_crowd(session: Session) -> dict[str, Outcome]:
    """Boot many servers at once."""
    seen = boot_at_once(session, [f"crowd-{each}" for each in range(CROWD)])
    return {"statuses": Outcome(facts=statuses(seen))}


def delete_all(session: Session) -> dict[str, Outcome]:
    """Delete all servers; nothing stays in Placement."""
    left = delete(session, *session.servers)
    return {"servers": Outcome(facts=left), "usages": Outcome(facts=_used(session.usages()))}


def delete(session: Session, *names: str) -> list[str]:
    """Delete servers, and wait for it; return the statuses of those that are left after a limit."""
    uuids = [session.servers.pop(name) for name in names]
    with ThreadPoolExecutor(CALLERS) as pool:
        list(pool.map(lambda uuid: session.nova("DELETE", f"/servers/{uuid}"), uuids))
    end_s = time.monotonic() + _DELETE_S
    while True:
        found = session.nova("GET", "/servers/detail?all_tenants=1")["servers"]
        left = [str(each["status"]) for each in found if each["id"] in uuids]
        if not left or time.monotonic() > end_s:
            return left
        time.sleep(0.3)


def _used(usages: dict[str, Amounts]) -> dict[str, Amounts]:
    """Return the amounts that are not zero, by provider."""
    used = {name: {kind: amount for kind, amount in each.items() if amount} for name, each in usages.items()}
    return {name: each for name, each in used.items() if each}
