"""Small documents for tests; fields that are not given have defaults."""

import msgspec

from roost.model.documents.answer import Answer
from roost.model.documents.fleet_document import FleetDocument
from roost.model.documents.request_document import RequestDocument
from roost.model.settings.roost_settings import Settings
from roost.offline.decide import decide
from roost.offline.read_document import parse_document
from tests.support.fleets.worlds import settings_of

ABC = [{"host": "a"}, {"host": "b"}, {"host": "c"}]


def fleet(**fields: object) -> FleetDocument:
    """Return a fleet, parsed from JSON; by default with hosts a, b and c."""
    return parse_document(msgspec.json.encode({"hosts": ABC} | fields), FleetDocument, name="fleet.json")


def request(**fields: object) -> RequestDocument:
    """Return a request, parsed from JSON; by default for 2 virtual CPUs and 1 GiB."""
    whole = {"flavor": {"vcpus": 2, "memory_mb": 1024}} | fields
    return parse_document(msgspec.json.encode(whole), RequestDocument, name="request.json")


def answer(fleet: FleetDocument, settings: Settings | None = None, *, seed: int = 0, **fields: object) -> Answer:
    """Return the answer to a request."""
    return decide(
        fleet,
        request(**fields),
        settings or settings_of(),
        seed=seed,
        fleet_name="fleet.json",
        request_name="request.json",
    )


def refusals(answer: Answer) -> dict[str, tuple[str, str]]:
    """Return the rule and the reason for each refused host."""
    return {host.nodename: (stage.rule, host.reason) for stage in answer.stages for host in stage.refused}


def chosen_nodes(answer: Answer) -> list[str]:
    """Return the chosen nodes of an answer, one for each instance."""
    return [pick.nodename for pick in answer.picks]


def provider(name: str, **fields: object) -> dict[str, object]:
    """Return a provider; by default with 8 virtual CPUs and 4 GiB."""
    inventories = {"VCPU": {"total": 8}, "MEMORY_MB": {"total": 4096}}
    return {"name": name, "inventories": inventories} | fields
