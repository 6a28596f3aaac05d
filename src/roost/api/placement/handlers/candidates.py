"""``/allocation_candidates``: the ways to satisfy a query."""

import random
from collections import deque
from itertools import islice

import msgspec

from roost.api import versions
from roost.api.answer_options import Options
from roost.api.http import Request, Response, make_response
from roost.api.placement import candidate_query
from roost.api.placement.candidate_json import Form, Requests, TextCache, form_of
from roost.api.placement.candidate_summaries import Summaries
from roost.api.versions import Version
from roost.engine.candidates.search import Compiled, UnknownName, compile_query, search, search_together
from roost.engine.columns.state import State
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
    compiled: Compiled
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
        known = self._queries.get(key)
        if known is not None and known.epoch == state.changes.epoch:
            return known
        query = (
            candidate_query.parse(request.pairs(), request.version, groups_max=request.options.groups_max)
            if known is None
            else known.query
        )
        # More candidates may be generated than shown.
        compiled = compile_query(
            state,
            msgspec.structs.replace(query, limit=None),
            is_one_provider_a_tree=not request.supports(versions.NESTED_CANDIDATES),
        )
        if isinstance(compiled, UnknownName):
            unknown_names.refuse(state, query)
            return None
        classes = {state.class_ids.id_of(name) for group in query.groups for name in group.resources}
        form = form_of(request.version, (each for each in classes if each is not None))
        if known is None:
            if len(self._queries) >= _QUERIES_MAX:
                del self._queries[next(iter(self._queries))]
            known = self._queries[key] = _CompiledQuery(query, compiled, form, state.changes.epoch)
        else:
            # The texts stay valid: they check the epoch themselves.
            known.compiled, known.form, known.epoch = compiled, form, state.changes.epoch
        return known

    def texts(self, known: _CompiledQuery) -> TextCache:
        """Return the cached texts of a query."""
        if known.texts is None:
            known.texts = TextCache()
            self._with_texts.append(known)
            if len(self._with_texts) > _TEXTS_MAX:
                self._with_texts.popleft().texts = None
        return known.texts

    def summaries(self, form: Form) -> Summaries:
        """Return the summaries in a form."""
        found = self._summaries.get(form)
        if found is None:
            if len(self._summaries) >= _FORMS_MAX:
                del self._summaries[next(iter(self._summaries))]
            found = self._summaries[form] = Summaries(self.state, form)
        return found


def list_candidates(request: Request, current: Current) -> Response:
    """List the candidates of a query."""
    state = current.state
    kept = current.kept.get(_Cache)
    if kept is None:
        kept = current.kept[_Cache] = _Cache(state)
    known = kept.compile(request)
    body = _NONE if known is None else _body(kept, known, request)
    return make_response(request, body, changed_s=state.now_s)


def _body(kept: _Cache, known: _CompiledQuery, request: Request) -> bytes:
    state, compiled, limit, options = kept.state, known.compiled, known.query.limit, request.options
    texts = kept.texts(known)
    requests = Requests(state, known.form, bytes_max=options.candidates_max_bytes, kept=texts)
    order, most = options.allocation_candidates_generation_strategy, _candidates_max(limit, options)
    if options.randomize_allocation_candidates:
        drawn = list(islice(search(state, compiled, order=order), most or _SAMPLE_MAX))
        shown = requests.write(random.sample(drawn, len(drawn) if limit is None else min(limit, len(drawn))))
    elif (alone := requests.write_flat(compiled, most)) is not None:
        shown = alone
    elif order == "breadth-first":
        shown = requests.write(search(state, compiled, order=order), limit=most)
    else:
        found = search_together(state, compiled, limit=most, watch=texts.watch)
        shown = requests.write(found, limit=most)
    summaries = kept.summaries(known.form).write(requests.used, while_active=request.while_active) if shown else ""
    return f'{{"allocation_requests":[{shown}],"provider_summaries":{{{summaries}}}}}'.encode()


def _candidates_max(limit: int | None, options: Options) -> int | None:
    """Return the maximum number of generated candidates; None: unlimited."""
    most = options.max_allocation_candidates if options.max_allocation_candidates > 0 else None
    if options.randomize_allocation_candidates or limit is None:
        return most
    return limit if most is None else min(limit, most)
