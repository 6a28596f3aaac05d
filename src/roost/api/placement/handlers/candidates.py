"""``/allocation_candidates``: every way to hold a request."""

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
# Of how many queries the texts of trees are kept.
_TEXTS_MAX = 16
# Out of how many candidates some are drawn at random, where nothing bounds how many are generated.
_SAMPLE_MAX = 100_000
_NONE = b'{"allocation_requests":[],"provider_summaries":{}}'


class _CompiledQuery(msgspec.Struct):
    """A query string that was understood, and what it means in the columns."""

    query: CandidateQuery
    compiled: Compiled
    form: Form
    epoch: int
    texts: TextCache | None = None


class _Cache:
    """What is kept of one state between requests."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._queries: dict[tuple[str, Version], _CompiledQuery] = {}
        self._summaries: dict[Form, Summaries] = {}
        self._with_texts: deque[_CompiledQuery] = deque()

    def compile(self, request: Request) -> _CompiledQuery | None:
        """Return what a request asks, in the numbers of the columns; None: a group before an unknown name has nothing.

        Raises:
            BadRequest: it cannot be understood, or names what nobody has defined.
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
        # What is generated may be more than what is shown.
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
            # The texts stay: they see themselves that the epoch changed, and leave their room.
            known.compiled, known.form, known.epoch = compiled, form, state.changes.epoch
        return known

    def texts(self, known: _CompiledQuery) -> TextCache:
        """Return what was written for a query before."""
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
    """List the ways to hold what the query string asks."""
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
    summaries = kept.summaries(known.form).write(requests.used, while_wanted=request.while_active) if shown else ""
    return f'{{"allocation_requests":[{shown}],"provider_summaries":{{{summaries}}}}}'.encode()


def _candidates_max(limit: int | None, options: Options) -> int | None:
    """Return how many candidates are generated at most; None: all there are."""
    most = options.max_allocation_candidates if options.max_allocation_candidates > 0 else None
    if options.randomize_allocation_candidates or limit is None:
        return most
    return limit if most is None else min(limit, most)
