"""Candidate queries as query strings, and the API over an engine state."""

import json
from dataclasses import replace
from random import Random
from urllib.parse import urlencode

from roost.api.answer_options import DEFAULTS
from roost.api.http import Identity, Request, Response, new_request_id
from roost.api.placement.application import Application
from roost.errors import RoostError
from roost.placement.current import Current
from roost.store.dry_store import DryStore
from tests.reference.candidates import Group, Query
from tests.support.fleets.forests import uuid_of


def is_expressible(query: Query) -> bool:
    """Return whether a query string can express a query: no empty group, and no trait both required and forbidden."""
    return all(
        replace(group, suffix="") != Group() and not any(each <= group.forbidden for each in group.required)
        for group in query.groups
    )


def parameters_of(query: Query) -> tuple[list[tuple[str, str]], int]:
    """Return the parameters of a query, and the oldest minor version that supports them."""
    pairs, oldest = [], 10
    subtrees = list(query.same_subtree)
    for group in query.groups:
        group_pairs, since = _group_parameters(group)
        pairs += group_pairs
        oldest = max(oldest, since)
        if not group.resources and not any(group.suffix in suffixes for suffixes in subtrees):
            subtrees.append(frozenset({group.suffix}))
    if query.policy == "isolate" or sum(1 for group in query.groups if group.suffix) > 1:
        pairs.append(("group_policy", query.policy))
        oldest = max(oldest, 25)
    root = [*sorted(query.root_required), *(f"!{name}" for name in sorted(query.root_forbidden))]
    if root:
        pairs.append(("root_required", ",".join(root)))
        oldest = max(oldest, 35)
    for suffixes in subtrees:
        pairs.append(("same_subtree", ",".join(sorted(suffixes))))
        oldest = max(oldest, 36)
    return pairs, oldest


def _group_parameters(group: Group) -> tuple[list[tuple[str, str]], int]:
    suffix, pairs, since = group.suffix, [], [10]
    if suffix:
        since.append(33)
    if group.resources:
        pairs.append((f"resources{suffix}", ",".join(f"{name}:{amount}" for name, amount in group.resources.items())))
    traits = [*(name for each in group.required for name in each if len(each) == 1)]
    forbidden = [f"!{name}" for name in sorted(group.forbidden)]
    if traits or forbidden:
        pairs.append((f"required{suffix}", ",".join([*traits, *forbidden])))
        since.append(22 if forbidden else 17)
    for names in group.required:
        if len(names) > 1:
            pairs.append((f"required{suffix}", "in:" + ",".join(sorted(names))))
            since.append(39)
    for names in group.member_of:
        pairs.append((f"member_of{suffix}", "in:" + ",".join(str(uuid_of(name)) for name in sorted(names))))
        since.append(21 if len(group.member_of) == 1 else 24)
    if group.forbidden_aggregates:
        uuids = ",".join(str(uuid_of(name)) for name in sorted(group.forbidden_aggregates))
        pairs.append((f"member_of{suffix}", f"!in:{uuids}"))
        since.append(32)
    if group.in_tree is not None:
        pairs.append((f"in_tree{suffix}", str(uuid_of(group.in_tree))))
        since.append(31)
    return pairs, max(since)


def random_url(query: Query, random: Random) -> tuple[str, int]:
    """Return a URL of a query, with its groups in order, and a random minor version that supports it."""
    pairs, oldest = parameters_of(query)
    newest = 28 if query.one_provider_a_tree and oldest < 29 else 39
    return f"/allocation_candidates?{urlencode(pairs)}", random.randint(oldest, newest)


class Columns:
    """The Placement API over an engine state."""

    def __init__(self, state, options=DEFAULTS):
        self.current = Current(DryStore(position=0, next_ids={}), state=state)
        self._application = Application(identify=_identify_administrator, allows=_allow_everything, options=options)

    def get(self, url, version=39):
        """Send a GET; return the status and the decoded body."""
        response = self.response(url, version)
        return response.status, json.loads(response.body)

    def response(self, url, version=39):
        """Send a GET; return the raw response."""
        path, _, query = url.partition("?")
        headers = {"openstack-api-version": f"placement 1.{version}"}
        request = Request(method="GET", path=path, query_string=query, headers=headers, request_id=new_request_id())
        try:
            task = self._application.enter(request)
            return task if isinstance(task, Response) else task(self.current)
        except RoostError as error:
            return self._application.fail(request, error)


def _identify_administrator(_headers):
    return Identity(user_id="admin")


def _allow_everything(_policy, _identity, _target):
    return True
