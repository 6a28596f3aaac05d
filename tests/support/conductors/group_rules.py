"""The invariants of server group members, also during moves."""

from collections import Counter

from tests.support.fleets.named_uuids import uuid_named


def check_group_policy(here, policy, limit):
    """Check the policy against present members and members that may return, and check the group's places."""
    state = here.run(lambda current: current.state)
    group = state.groups_by_uuid[uuid_named("g")]
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
    assert {scope: place for scope, place in group.places.items() if place[1]} == {
        scope: (holder, count) for (scope, holder), count in seats.items()
    }
