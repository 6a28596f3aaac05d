"""Small documents for tests: only what matters is said."""

import msgspec

from roost.model.documents.answer import Answer
from roost.model.documents.fleet_document import FleetDocument
from roost.model.documents.request_document import RequestDocument
from roost.model.settings.roost_settings import Settings
from roost.offline.decide import decide
from roost.offline.read_document import parse_document
from tests.support.fleets.worlds import settings_of

ABC = [{"host": "a"}, {"host": "b"}, {"host": "c"}]


def fleet(**said: object) -> FleetDocument:
    """Give a fleet as its JSON says it; hosts a, b and c where nothing is said."""
    return parse_document(msgspec.json.encode({"hosts": ABC} | said), FleetDocument, name="fleet.json")


def request(**said: object) -> RequestDocument:
    """Give a request as its JSON says it, for 2 virtual CPUs and 1 GiB where nothing is said."""
    whole = {"flavor": {"vcpus": 2, "memory_mb": 1024}} | said
    return parse_document(msgspec.json.encode(whole), RequestDocument, name="request.json")


def answer(fleet: FleetDocument, settings: Settings | None = None, *, seed: int = 0, **said: object) -> Answer:
    """Decide about a request."""
    return decide(
        fleet,
        request(**said),
        settings or settings_of(),
        seed=seed,
        fleet_name="fleet.json",
        request_name="request.json",
    )


def refused(answer: Answer) -> dict[str, tuple[str, str]]:
    """Give who refused each host, and why."""
    return {host.nodename: (stage.rule, host.reason) for stage in answer.stages for host in stage.refused}


def chosen(answer: Answer) -> list[str]:
    """Give the nodes of an answer, one an instance."""
    return [pick.nodename for pick in answer.picks]


def provider(name: str, **said: object) -> dict[str, object]:
    """Give a provider with 8 virtual CPUs and 4 GiB where nothing is said."""
    offers = {"VCPU": {"total": 8}, "MEMORY_MB": {"total": 4096}}
    return {"name": name, "inventories": offers} | said
