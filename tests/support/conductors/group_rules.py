"""What always holds of the members of server groups, also while they move."""

from collections import Counter

from tests.support.fleets.named_uuids import uuid_named


def rule_holds(here, policy, limit):
    """See that no rule is broken by those who are there and those who may come back, and that places say so."""
    state = here.run(lambda current: current.state)
    found = state.groups_by_uuid[uuid_named("g")]
    rows = [row for each in state.holders.values() if (row := each.instance or each.kept) is not None and row.group_id]
    hosts = [state.hosts.row_of_id[row.host_id] for row in rows]
    if policy == "anti-affinity":
        assert max(Counter(hosts).values(), default=0) <= limit
    elif policy == "affinity":
        assert len(set(hosts)) <= 1
    else:
        racks = {(state.hosts.facts[at].rack, row.holder) for at, row in zip(hosts, rows, strict=True)}
        assert len({rack for rack, _ in racks}) == len(racks)
    seats = Counter((row.scope, row.holder) for row in rows)
    assert {scope: place for scope, place in found.places.items() if place[1]} == {
        scope: (holder, count) for (scope, holder), count in seats.items()
    }
