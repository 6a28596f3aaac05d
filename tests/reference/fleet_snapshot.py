"""A slow, obvious snapshot of a fleet: a loop over hosts, by the public views of the state."""

from collections import Counter

from roost.model.host import is_up
from roost.scheduler.rule_support import scopes


def list_hosts(state, *, now_s, down_time_s, default_zone, classes_max=8, draining=()):
    """Return the classes, and one dictionary per live host, ordered by stored id."""
    rows = [row for row in range(len(state.hosts)) if state.hosts.alive.view[row]]
    rows.sort(key=lambda row: state.hosts.ids[row])
    classes = find_classes(state, rows)[:classes_max]
    classes.sort(key=state.class_ids.id_of)
    zones = scopes.zones(state, default_zone=default_zone)
    found = [_describe(state, row, classes, zones, now_s=now_s, down_time_s=down_time_s) for row in rows]
    for row, host in zip(rows, found, strict=True):
        host["state"] += 2 if state.hosts.names[row].lower() in draining else 0
    return classes, found


def find_classes(state, rows):
    """Return the names of the classes that hosts offer, those of the most hosts first."""
    counts = Counter()
    for row in rows:
        for class_id, columns in state.classes.items():
            if amount(state, row, columns.capacity) > 0:
                counts[state.class_ids.name_of(class_id)] += 1
    return sorted(counts, key=lambda name: (-counts[name], name))


def tree(state, row):
    """Return the providers of a host."""
    root = int(state.hosts.provider_row.view[row])
    members = range(len(state.providers))
    return [each for each in members if state.providers.alive.view[each] and state.providers.root.view[each] == root]


def amount(state, row, column):
    """Return the sum of a column over the providers of a host."""
    return sum(int(column.view[each]) for each in tree(state, row))


def _describe(state, row, classes, zones, *, now_s, down_time_s):
    hosts, facts = state.hosts, state.hosts.facts[row]
    root = int(hosts.provider_row.view[row])
    columns = [state.classes[state.class_ids.id_of(name)] for name in classes]
    capacity = [amount(state, row, each.capacity) for each in columns]
    used = [amount(state, row, each.used) for each in columns]
    host_state = 1 if facts.is_disabled else 0
    host_state += 0 if is_up(facts, now_s=now_s, down_time_s=down_time_s) else 4
    host_state += 8 if any(taken > room for taken, room in zip(used, capacity, strict=True)) else 0
    return {
        "name": hosts.nodes[row],
        "shares": [_share(taken, room) for taken, room in zip(used, capacity, strict=True)],
        "instances": int(hosts.columns["num_instances"].view[row]),
        "state": host_state,
        "reported_s": int(facts.reported_at_s or 0),
        "zone": next((zone.name for zone in zones if zone.mask[row]), ""),
        "aggregates": sorted(
            (state.aggregates.name_of(label), state.aggregate_names[label])
            for label in state.membership.labels_of(root)
        ),
        "rack": facts.rack,
        "kind": capacity,
    }


def _share(used, capacity):
    if capacity == 0:
        return 65_534 if used else 65_535
    return min(used * 1000 // capacity, 65_534)
