"""Operations of operators: disable a service, and the commands of Nova for Placement."""

import json
import time

from tests.bed.cloud_api import Json
from tests.bed.conf_files import PASSWORD
from tests.bed.records import Outcome
from tests.bed.session import Session

_ORPHAN = "11111111-2222-3333-4444-555555555555"
_DISABLED = "COMPUTE_STATUS_DISABLED"
_SPREAD_S = 30.0


def disable_service(session: Session) -> dict[str, Outcome]:
    """Boot servers while a compute service is disabled, then enable it."""
    service = next(each["id"] for each in session.api.computes() if each["host"] == "cmp1")
    outcomes = {}
    for status in ("disabled", "enabled"):
        session.nova("PUT", f"/os-services/{service}", {"status": status})
        outcomes[status] = Outcome(facts=_has_trait(session, wanted=status == "disabled"))
        if status == "disabled":
            for each in range(4):
                seen = session.boot(f"disabled-{each}")
                outcomes[f"boot {each}"] = Outcome(status=seen.status, facts={"is elsewhere": seen.host != "cmp1"})
            outcomes["boot on the disabled host"] = session.boot("disabled-magic", "magic", host="cmp1")
    return outcomes


def _has_trait(session: Session, *, wanted: bool) -> bool:
    """Wait until the compute service wrote the trait of its status; return whether it is there."""
    path = f"/resource_providers/{session.providers()['cmp1']}/traits"
    end_s = time.monotonic() + _SPREAD_S
    while (found := _DISABLED in session.placement("GET", path)["traits"]) != wanted and time.monotonic() < end_s:
        time.sleep(0.2)
    return found


def audit(session: Session) -> dict[str, Outcome]:
    """Find and delete the allocations of an instance that does not exist."""
    words = ("placement", "audit", "--verbose")
    outcomes = {"nothing to find": Outcome(facts=session.manage(*words))}
    provider = session.providers()["cmp1"]
    session.placement(
        "PUT",
        f"/allocations/{_ORPHAN}",
        {
            "allocations": {provider: {"resources": {"DISK_GB": 1}}},
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
            "project_id": session.api.project,
            "user_id": "a-user",
        },
    )
    outcomes["find"] = Outcome(facts=session.manage(*words))
    outcomes["delete"] = Outcome(facts=session.manage(*words, "--delete"))
    return outcomes | {"is deleted": Outcome(facts=session.allocations(_ORPHAN))}


def heal(session: Session) -> dict[str, Outcome]:
    """Delete the allocations of a server, and let Nova create them again."""
    before = session.allocations(session.servers["one"])
    session.placement("DELETE", f"/allocations/{session.servers['one']}")
    words = ("placement", "heal_allocations", "--verbose", "--instance", session.servers["one"])
    outcomes = {
        "dry run": Outcome(facts=session.manage(*words, "--dry-run")["exit code"]),
        "heal": Outcome(facts=session.manage(*words)),
    }
    return outcomes | {"equals": Outcome(facts=session.allocations(session.servers["one"]) == before)}


def sync_aggregates(session: Session) -> dict[str, Outcome]:
    """Copy the aggregates of Nova to Placement; Nova's order of hosts varies."""
    found: Json = session.manage("placement", "sync_aggregates", "--verbose")
    return {"sync": Outcome(facts=found["exit code"])}


def run_openstack(session: Session) -> dict[str, Outcome]:
    """Read Placement and Nova with the command ``openstack``."""
    provider = session.providers()["cmp1"]
    login = {
        "--os-auth-url": session.cloud.places.url("keystone"),
        "--os-username": "admin",
        "--os-password": PASSWORD,
        "--os-project-name": "admin",
        "--os-user-domain-id": "default",
        "--os-project-domain-id": "default",
        "--format": "json",
    }
    options = [word for pair in login.items() for word in pair]
    commands: dict[str, tuple[str, ...]] = {
        "usages": ("resource", "provider", "usage", "show", provider),
        "inventories": ("resource", "provider", "inventory", "list", provider),
        "candidates": (
            *("allocation", "candidate", "list", "--resource", "VCPU=1"),
            *("--os-placement-api-version", "1.39"),
        ),
        "hypervisors": ("hypervisor", "list", "--os-compute-api-version", "2.96"),
    }
    outcomes = {}
    for label, words in commands.items():
        result = session.cloud.run("openstack", *words, *options, is_checked=False)
        rows = json.loads(result.stdout) if result.returncode == 0 else [{"error": result.stderr[-300:]}]
        outcomes[label] = Outcome(facts=len(rows) if label == "candidates" else _without_usage(rows))
    return outcomes


def _without_usage(rows: list[dict[str, Json]]) -> list[dict[str, Json]]:
    """Return rows without the columns that depend on the choice of hosts, and without their order."""
    plain = [{name: value for name, value in row.items() if name not in {"usage", "used"}} for row in rows]
    return sorted(plain, key=lambda row: json.dumps(row, sort_keys=True))
