"""Slow candidate responses: one dictionary for each candidate and provider, from the engine's values."""

from roost.engine.candidates.search import compile_query, search, to_candidate


def answer_of(state, query, version):
    """Return the response body in a minor version."""
    compiled = compile_query(state, query, is_one_provider_per_tree=version < 29)
    rows = list(search(state, compiled))
    candidates = [to_candidate(state, each) for each in rows]
    requested = {name for group in query.groups for name in group.resources}
    shown = {row for each in rows for row, _, _ in each.takes}
    if version >= 29:
        roots = {state.providers.root.view[row] for row in shown}
        shown = {row for root in roots for row in state.providers.rows_of_tree(int(root))}
    return {
        "allocation_requests": [request_of(candidate, version) for candidate in candidates],
        "provider_summaries": {
            state.providers.uuids[row]: summary_of(state, row, version, requested=requested) for row in sorted(shown)
        },
    }


def request_of(candidate, version):
    """Return one allocation request."""
    if version < 12:
        shown = [
            {"resource_provider": {"uuid": uuid}, "resources": amounts}
            for uuid, amounts in candidate.allocations.items()
        ]
        return {"allocations": shown}
    value = {"allocations": {uuid: {"resources": amounts} for uuid, amounts in candidate.allocations.items()}}
    if version >= 34:
        value["mappings"] = {suffix: list(uuids) for suffix, uuids in candidate.mappings.items()}
    return value


def summary_of(state, row, version, *, requested):
    """Return the summary of one provider."""
    resources = {}
    for class_id, columns in state.classes.items():
        name = state.class_ids.name_of(class_id)
        if row in columns.holders and (version >= 27 or name in requested):
            each = {column: float(getattr(columns, column).view[row]) for column in ("total", "reserved", "ratio")}
            capacity = int((each["total"] - each["reserved"]) * each["ratio"])
            resources[name] = {"capacity": capacity, "used": int(columns.used.view[row])}
    value = {"resources": resources}
    if version >= 17:
        value["traits"] = sorted(state.trait_ids.name_of(each) for each in state.traits.labels_of(row))
    if version >= 29:
        parent, root = int(state.providers.parent.view[row]), int(state.providers.root.view[row])
        value["parent_provider_uuid"] = None if parent < 0 else state.providers.uuids[parent]
        value["root_provider_uuid"] = state.providers.uuids[root]
    return value
