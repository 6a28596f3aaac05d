"""Operations that move servers."""

import time
from collections.abc import Callable

from tests.bed.cloud_api import Json, Refusal
from tests.bed.conf_files import COMPUTES
from tests.bed.records import Outcome, holdings_of
from tests.bed.session import Session

_RETURN_S = 120.0  # of a compute service after an evacuation
_POLL_S = 0.5


def _has_status(*statuses: str) -> Callable[[Json], bool]:
    return lambda server: server["status"] in statuses


def _move(session: Session, name: str, action: str, details: Json = None, **more: bool) -> dict[str, Outcome]:
    """Move a server, up to its confirmation; return what the server and its migration hold."""
    source = session.server(name)["OS-EXT-SRV-ATTR:host"]
    moved = session.act(name, action, details, until=_has_status("VERIFY_RESIZE", "ERROR"), **more)
    path = f"/os-migrations?instance_uuid={session.servers[name]}"
    migrations = sorted(session.nova("GET", path)["migrations"], key=lambda each: int(each["id"]))
    holdings = holdings_of(session.allocations(migrations[-1]["uuid"]), source)
    return {f"{action} {name}": moved, f"migration of {name}": Outcome(holdings=holdings)}


def _finish(session: Session, name: str, action: str) -> dict[str, Outcome]:
    seen = session.act(name, action, until=_has_status("ACTIVE", "ERROR"), is_host_free=False)
    return {f"{action} {name}": Outcome(status=seen.status, fault=seen.fault, holdings=seen.holdings)}


def resize(session: Session) -> dict[str, Outcome]:
    """Resize servers, and confirm, revert, or find no host."""
    for name in ("resize-1", "resize-2"):
        session.boot(name)
    small = {"flavorRef": session.flavors["small"]}
    outcomes = _move(session, "resize-1", "resize", small) | _finish(session, "resize-1", "confirmResize")
    outcomes |= _move(session, "resize-2", "resize", small) | _finish(session, "resize-2", "revertResize")
    huge = {"flavorRef": session.flavors["huge"]}
    refusal = session.act("resize-2", "resize", huge, until=_has_status("ACTIVE", "ERROR"), is_host_free=False)
    seen = Outcome(status=refusal.status, fault=refusal.fault, holdings=refusal.holdings)
    return outcomes | {"resize to a size that fits nowhere": seen}


def migrate(session: Session) -> dict[str, Outcome]:
    """Migrate a server to any host, then to a host that the operator names."""
    session.boot("cold")
    outcomes = _move(session, "cold", "migrate") | _finish(session, "cold", "confirmResize")
    source = session.server("cold")["OS-EXT-SRV-ATTR:host"]
    target = next(host for host in COMPUTES if host != source)
    again = _move(session, "cold", "migrate", {"host": target}) | _finish(session, "cold", "confirmResize")
    is_there = session.server("cold")["OS-EXT-SRV-ATTR:host"] == target
    # The target depends on the first choice.
    outcomes |= {f"{label}, to a host": _without_host(each) for label, each in again.items()}
    return outcomes | {"is on that host": Outcome(facts=is_there)}


def _without_host(outcome: Outcome) -> Outcome:
    return Outcome(status=outcome.status, fault=outcome.fault, holdings=outcome.holdings, facts=outcome.facts)


def migrate_live(session: Session) -> dict[str, Outcome]:
    """Migrate a running server to any host, to hosts that the operator names, and to an unknown one."""
    session.boot("live", availability_zone="nova:cmp3", is_host_free=False)
    outcomes = {}
    for target in (None, "cmp3", "cmp2"):
        source = session.server("live")["OS-EXT-SRV-ATTR:host"]

        def has_moved(server: Json, source: str = source) -> bool:
            return server["OS-EXT-STS:task_state"] is None and server["OS-EXT-SRV-ATTR:host"] != source

        details = {"host": target, "block_migration": "auto"}
        seen = session.act("live", "os-migrateLive", details, until=has_moved, is_host_free=target is None)
        outcomes[f"to {target or 'any host'}"] = seen
    unknown = {"host": "cmp9", "block_migration": "auto"}
    outcomes["to an unknown host"] = session.act("live", "os-migrateLive", unknown, until=lambda _: True)
    return outcomes


def shelve(session: Session) -> dict[str, Outcome]:
    """Shelve a server, which then holds nothing, and unshelve it."""
    session.boot("shelf", "gadget")
    shelved = session.act("shelf", "shelve", until=_has_status("SHELVED_OFFLOADED", "ERROR"))
    return {"shelve": shelved, "unshelve": session.act("shelf", "unshelve", until=_has_status("ACTIVE", "ERROR"))}


def rebuild(session: Session) -> dict[str, Outcome]:
    """Rebuild a server from its image, then from another one."""
    other = session.api.upload_image("other")
    images = {"same image": session.image, "other image": other}
    outcomes = {}
    for label, image in images.items():
        seen = session.act("one", "rebuild", {"imageRef": image}, until=_has_status("ACTIVE", "ERROR"))
        outcomes[label] = _without_host(seen)
    return outcomes


def evacuate(session: Session) -> dict[str, Outcome]:
    """Evacuate a server from a host whose compute service ended, then start the service again."""
    outcomes = {"boot": session.boot("leave", host="cmp3", is_host_free=False)}
    service = next(each["id"] for each in session.api.computes() if each["host"] == "cmp3")
    session.cloud.processes.stop("cmp3")
    session.nova("PUT", f"/os-services/{service}", {"forced_down": True})
    outcomes["evacuate"] = session.act(
        "leave", "evacuate", {}, until=lambda server: server["OS-EXT-SRV-ATTR:host"] != "cmp3"
    )
    session.cloud.processes.restart("cmp3")
    end_s = time.monotonic() + _RETURN_S
    while "cmp3" in session.allocations(session.servers["leave"]) and time.monotonic() < end_s:
        time.sleep(_POLL_S)
    while not _return_to_service(session, service) and time.monotonic() < end_s:
        time.sleep(_POLL_S)
    while any(each["state"] != "up" for each in session.api.computes()) and time.monotonic() < end_s:
        time.sleep(_POLL_S)
    outcomes["after the return of the host"] = _without_host(session.observe("leave"))
    states = {each["host"]: each["state"] for each in session.api.computes()}
    return outcomes | {"services": Outcome(facts=states)}


def _return_to_service(session: Session, service: str) -> bool:
    """Enable a compute service again; Nova refuses this until the service has cleaned up."""
    try:
        session.nova("PUT", f"/os-services/{service}", {"forced_down": False})
    except Refusal:
        return False
    return True
