"""``/allocation_candidates``: the ways to satisfy a query."""

import random
from collections import deque
from itertools import islice

import msgspec

from roost.api.answer_options import Options
from roost.api.http import Request, Response, make_response
from roost.api.placement import candidate_query
from roost.api.placement.candidate_json import Form, Requests, TextCache, form_of
from roost.api.placement.candidate_summaries import Summaries
from roost.engine.candidates.search import CompiledQuery, UnknownNames, compile_query, search, search_grouped
from roost.engine.columns.state import State
from roost.model.placement import microversions
from roost.model.placement.microversions import Version
from roost.model.request import CandidateQuery
from roost.placement import unknown_names
from roost.placement.current import Current

_QUERIES_MAX = 512
_FORMS_MAX = 4
# Maximum number of queries with cached tree texts.
_TEXTS_MAX = 16
# Number of candidates to sample from, if their number is unlimited.
_SAMPLE_MAX = 100_000
_NONE = b'{"allocation_requests":[],"provider_summaries":{}}'


class _CompiledQuery(msgspec.Struct):
    """A parsed query string, compiled for the columns."""

    query: CandidateQuery
    compiled: CompiledQuery
    form: Form
    epoch: int
    texts: TextCache | None = None


class _Cache:
    """Cached queries and texts of one state."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._queries: dict[tuple[str, Version], _CompiledQuery] = {}
        self._summaries: dict[Form, Summaries] = {}
        self._with_texts: deque[_CompiledQuery] = deque()

    def compile(self, request: Request) -> _CompiledQuery | None:
        """Return the compiled query of a request; None: a group before an unknown name has no candidates.

        Raises:
            BadRequest: the query is invalid, or has an unknown name.
        """
        key, state = (request.query_string, request.version), self.state
        cached = self._queries.get(key)
        if cached is not None and cached.epoch == state.changes.epoch:
            return cached
        query = (
            candidate_query.parse(request.pairs(), request.version, groups_max=request.options.groups_max)
            if cached is None
            else cached.query
        )
        # More candidates may be generated than shown.
        compiled = compile_query(
            state,
            msgspec.structs.replace(query, limit=None),
            is_one_provider_per_tree=not request.supports(microversions.NESTED_CANDIDATES),
        )
        if isinstance(compiled, UnknownNames):
            unknown_names.refuse(state, query)
            return None
        classes = {state.class_ids.id_of(name) for group in query.groups for name in group.resources}
        form = form_of(request.version, (each for each in classes if each is not None))
        if cached is None:
            if len(self._queries) >= _QUERIES_MAX:
                del self._queries[next(iter(self._queries))]
            cached = self._queries[key] = _CompiledQuery(query, compiled, form, state.changes.epoch)
        else:
            # The texts stay valid: they check the epoch themselves.
            cached.compiled, cached.form, cached.epoch = compiled, form, state.changes.epoch
        return cached

    def texts(self, query: _CompiledQuery) -> TextCache:
        """Return the cached texts of a query."""
        if query.texts is None:
            query.texts = TextCache()
            self._with_texts.append(query)
            if len(self._with_texts) > _TEXTS_MAX:
                self._with_texts.popleft().texts = None
        return query.texts

    def summaries(self, form: Form) -> Summaries:
        """Return the summaries in a form."""
        summaries = self._summaries.get(form)
        if summaries is None:
            if len(self._summaries) >= _FORMS_MAX:
                del self._summaries[next(iter(self._summaries))]
            summaries = self._summaries[form] = Summaries(self.state, form)
        return summaries


def list_candidates(request: Request, current: Current) -> Response:
    """List the candidates of a query."""
    state = current.state
    cache = current.kept.get(_Cache)
    if cache is None:
        cache = current.kept[_Cache] = _Cache(state)
    query = cache.compile(request)
    body = _NONE if query is None else _body(cache, query, request)
    return make_response(request, body, changed_s=state.now_s)


def _body(cache: _Cache, query: _CompiledQuery, request: Request) -> bytes:
    state, compiled, limit, options = cache.state, query.compiled, query.query.limit, request.options
    texts = cache.texts(query)
    requests = Requests(state, query.form, bytes_max=options.candidates_max_bytes, cache=texts)
    order, most = options.allocation_candidates_generation_strategy, _candidates_max(limit, options)
    if options.randomize_allocation_candidates:
        sample = list(islice(search(state, compiled, order=order), most or _SAMPLE_MAX))
        text = requests.write(random.sample(sample, len(sample) if limit is None else min(limit, len(sample))))
    elif (alone := requests.write_flat(compiled, most)) is not None:
        text = alone
    elif order == "breadth-first":
        text = requests.write(search(state, compiled, order=order), limit=most)
    else:
        candidates = search_grouped(state, compiled, limit=most, watch=texts.watch)
        text = requests.write(candidates, limit=most)
    summaries = cache.summaries(query.form).write(requests.used, while_active=request.while_active) if text else ""
    return f'{{"allocation_requests":[{text}],"provider_summaries":{{{summaries}}}}}'.encode()


def _candidates_max(limit: int | None, options: Options) -> int | None:
    """Return the maximum number of generated candidates; None: unlimited."""
    most = options.max_allocation_candidates if options.max_allocation_candidates > 0 else None
    if options.randomize_allocation_candidates or limit is None:
        return most
    return limit if most is None else min(limit, most)
