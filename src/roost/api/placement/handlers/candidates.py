"""``/allocation_candidates``: the ways to satisfy a query."""

import random
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from roost.api.answer_options import Options
from roost.api.http import Request, Response, make_response
from roost.api.placement.candidate_cache import CachedQuery, CandidateCache
from roost.api.placement.candidate_json import Requests
from roost.engine.candidates.fans import Fan
from roost.engine.candidates.search import TreeCandidates, search, search_grouped
from roost.engine.candidates.walk import RowCandidate
from roost.placement.current import Current

# Number of candidates to sample from, if no setting limits it.
_SAMPLE_MAX = 100_000
_EMPTY = b'{"allocation_requests":[],"provider_summaries":{}}'


def list_candidates(request: Request, current: Current) -> Response:
    """List the candidates of a query: parse, compile, search, and render."""
    cache = CandidateCache.of(current)
    parsed = cache.parse(request)
    query = cache.compile(request, parsed)
    if query is None:
        return make_response(request, _EMPTY, changed_s=cache.state.now_s)
    matches = _search(cache, query, request.options)
    body = _render(cache, query, matches, request=request)
    return make_response(request, body, changed_s=cache.state.now_s)


class _Matches(NamedTuple):
    """The candidates of a query; the search runs while they are rendered."""

    candidates: Iterable[RowCandidate | Fan | TreeCandidates]
    limit: int | None  # maximum number to render; None: all
    flat_rows: list[int] | None = None  # provider rows of hosts without children, in place of candidates


def _search(cache: CandidateCache, query: CachedQuery, options: Options) -> _Matches:
    state, compiled, texts = cache.state, query.compiled, cache.texts(query)
    limit, requested = _candidates_max(query.query.limit, options), query.query.limit
    order = options.allocation_candidates_generation_strategy
    if options.randomize_allocation_candidates:
        sample = list(islice(search(state, compiled, order=order), limit or _SAMPLE_MAX))
        count = len(sample) if requested is None else min(requested, len(sample))
        return _Matches(random.sample(sample, count), None)
    flat_rows = texts.flat_index.find_rows(state, compiled)
    if flat_rows is not None:
        return _Matches((), limit, flat_rows)
    if order == "breadth-first":
        return _Matches(search(state, compiled, order=order), limit)
    return _Matches(search_grouped(state, compiled, limit=limit, watch=texts.watch), limit)


def _render(cache: CandidateCache, query: CachedQuery, matches: _Matches, *, request: Request) -> bytes:
    texts, bytes_max = cache.texts(query), request.options.candidates_max_bytes
    requests = Requests(cache.state, query.form, bytes_max=bytes_max, cache=texts)
    if matches.flat_rows is None:
        text = requests.write(matches.candidates, limit=matches.limit)
    else:
        text = requests.write_flat(query.compiled, matches.flat_rows, matches.limit)
    summaries = cache.summaries(query.form).write(requests.used, while_active=request.while_active) if text else ""
    return f'{{"allocation_requests":[{text}],"provider_summaries":{{{summaries}}}}}'.encode()


def _candidates_max(requested: int | None, options: Options) -> int | None:
    """Return the maximum number of generated candidates; None: unlimited."""
    limit = options.max_allocation_candidates if options.max_allocation_candidates > 0 else None
    if options.randomize_allocation_candidates or requested is None:
        return limit
    return requested if limit is None else min(requested, limit)
