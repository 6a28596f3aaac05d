"""Compiled candidate queries and the JSON of their responses, cached for one state."""

from collections import deque

import msgspec

from roost.api.http import Request
from roost.api.placement import candidate_query
from roost.api.placement.candidate_json import Form, TextCache, form_of
from roost.api.placement.candidate_summaries import Summaries
from roost.engine.candidates.search import CompiledQuery, UnknownNames, compile_query
from roost.engine.columns.state import State
from roost.model.placement import microversions
from roost.model.placement.microversions import Version
from roost.model.request import CandidateQuery
from roost.placement import unknown_names
from roost.placement.current import Current

_QUERIES_MAX = 512
_FORMS_MAX = 4
# Maximum number of queries with cached JSON.
_TEXTS_MAX = 16


class CachedQuery(msgspec.Struct):
    """A parsed query string, compiled for the columns."""

    query: CandidateQuery
    compiled: CompiledQuery
    form: Form
    epoch: int
    texts: TextCache | None = None


class CandidateCache:
    """The cached queries and JSON of one state."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._queries: dict[tuple[str, Version], CachedQuery] = {}
        self._summaries: dict[Form, Summaries] = {}
        self._with_texts: deque[CachedQuery] = deque()

    @classmethod
    def of(cls, current: Current) -> "CandidateCache":
        """Return the cache of the current columns."""
        cache: CandidateCache | None = current.caches.get(cls)
        if cache is None:
            cache = current.caches[cls] = cls(current.state)
        return cache

    def parse(self, request: Request) -> CandidateQuery:
        """Return the parsed query string of a request.

        Raises:
            BadRequest: the query is invalid.
        """
        cached = self._queries.get((request.query_string, request.version))
        if cached is not None:
            return cached.query
        return candidate_query.parse(request.pairs(), request.version, groups_max=request.options.groups_max)

    def compile(self, request: Request, query: CandidateQuery) -> CachedQuery | None:
        """Return the compiled query; None: it has unknown names, but its other parts exclude all candidates.

        Raises:
            BadRequest: a class or trait is unknown; see ``unknown_names.check_names``.
        """
        key, state = (request.query_string, request.version), self.state
        cached = self._queries.get(key)
        if cached is not None and cached.epoch == state.changes.epoch:
            return cached
        # Compile without the limit: more candidates may be generated than shown.
        compiled = compile_query(
            state,
            msgspec.structs.replace(query, limit=None),
            is_one_provider_per_tree=not request.supports(microversions.NESTED_CANDIDATES),
        )
        if isinstance(compiled, UnknownNames):
            unknown_names.check_names(state, query)
            return None
        classes = {state.class_ids.id_of(name) for group in query.groups for name in group.resources}
        form = form_of(request.version, (each for each in classes if each is not None))
        if cached is None:
            if len(self._queries) >= _QUERIES_MAX:
                del self._queries[next(iter(self._queries))]
            cached = self._queries[key] = CachedQuery(query, compiled, form, state.changes.epoch)
        else:
            # Keep the cached JSON: its entries detect changes themselves.
            cached.compiled, cached.form, cached.epoch = compiled, form, state.changes.epoch
        return cached

    def texts(self, query: CachedQuery) -> TextCache:
        """Return the cached JSON of a query."""
        if query.texts is None:
            query.texts = TextCache()
            self._with_texts.append(query)
            if len(self._with_texts) > _TEXTS_MAX:
                self._with_texts.popleft().texts = None
        return query.texts

    def summaries(self, form: Form) -> Summaries:
        """Return the provider summaries for one form of response."""
        summaries = self._summaries.get(form)
        if summaries is None:
            if len(self._summaries) >= _FORMS_MAX:
                del self._summaries[next(iter(self._summaries))]
            summaries = self._summaries[form] = Summaries(self.state, form)
        return summaries
