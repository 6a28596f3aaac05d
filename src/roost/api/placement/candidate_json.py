"""Candidates as JSON, written directly from the columns without intermediate dictionaries."""

import math
from collections.abc import Collection, Iterable
from typing import NamedTuple

import msgspec

from roost.engine.candidates.fans import Fan
from roost.engine.candidates.flat_index import FlatIndex
from roost.engine.candidates.search import CompiledQuery, TreeCandidates
from roost.engine.candidates.tree_watch import TreeWatch
from roost.engine.candidates.walk import End, Mapping, RowCandidate, Sheaf, Take
from roost.engine.columns.state import State
from roost.errors import BadRequest
from roost.model.placement import microversions
from roost.model.placement.microversions import Version

_ENDS_MAX = 64
# Maximum size of the cache of one query.
_CACHE_MAX_BYTES = 8 * 1024 * 1024
# Overhead of a cached tree in bytes, and of each of its providers.
_TREE_BYTES, _EACH_BYTES = 512, 64


class _TreeText(NamedTuple):
    """The JSON of some allocation requests of a tree, separated by commas."""

    text: str
    requests: int
    used: frozenset[int]  # provider rows
    limit: float  # requested number; if ``requests`` is smaller, the tree has no further requests

    @property
    def memory_bytes(self) -> int:
        """Approximate memory of this entry."""
        return _TREE_BYTES + _EACH_BYTES * len(self.used) + len(self.text)

    def serves(self, limit: float) -> bool:
        """Return whether these are the first ``limit`` requests, or all requests of the tree."""
        return self.requests == limit or self.requests < min(limit, self.limit)


class _FlatText(NamedTuple):
    """The JSON of the allocation requests of hosts without children, separated by commas."""

    stamp: tuple[int, int, int | None]  # epoch, version of the rows, and limit
    text: str
    rows: list[int]  # provider rows, ascending


class TextCache:
    """Cached JSON of one query in one form."""

    def __init__(self) -> None:
        self.trees: dict[int, _TreeText] = {}  # by provider row of the root
        self.watch = TreeWatch(self._forget)
        self.flat_index = FlatIndex()
        self.flat_text: _FlatText | None = None
        self._bytes = 0

    def store(self, anchor: int, entry: _TreeText) -> None:
        """Cache the requests of a tree if they fit; they replace its previous entry."""
        self._forget([anchor])
        size = entry.memory_bytes
        if self._bytes + size <= _CACHE_MAX_BYTES:
            self._bytes += size
            self.trees[anchor] = entry

    def _forget(self, anchors: list[int] | None) -> None:
        if anchors is None:
            self.trees.clear()
            self._bytes = 0
            return
        for anchor in anchors:
            entry = self.trees.pop(anchor, None)
            self._bytes -= 0 if entry is None else entry.memory_bytes


class Form(msgspec.Struct, frozen=True):
    """The contents of a response, which depend on the version."""

    has_provider_keys: bool  # whether allocations are an object keyed by provider, not a list
    has_mappings: bool
    has_traits: bool
    has_trees: bool  # whether summaries cover whole trees, with parents and roots
    classes: frozenset[int] | None  # class ids in summaries; None: all


def form_of(version: Version, classes: Iterable[int]) -> Form:
    """Return the form of a version, for a query with these classes."""
    has_all = version >= microversions.ALL_CLASSES_IN_SUMMARIES
    return Form(
        has_provider_keys=version >= microversions.ALLOCATIONS_BY_PROVIDER,
        has_mappings=version >= microversions.MAPPINGS,
        has_traits=version >= microversions.CANDIDATES_BY_TRAITS,
        has_trees=version >= microversions.NESTED_CANDIDATES,
        classes=None if has_all else frozenset(classes),
    )


class Requests:
    """The allocation requests of one response, and the providers that they use.

    Names need no escapes: classes and suffixes have letters, digits, dashes and underscores only.

    Args:
        state: the columns.
        form: contents of the response.
        bytes_max: maximum size of the requests.
        cache: JSON of earlier responses; new texts are added to it.
    """

    def __init__(self, state: State, form: Form, *, bytes_max: int, cache: TextCache | None = None) -> None:
        self._state = state
        self._form = form
        self._bytes_max = bytes_max
        self._cache = cache or TextCache()
        self._texts: dict[tuple[Take, ...], str] = {}
        self._provider_texts: dict[tuple[Take, ...], str] = {}
        self._mapping_texts: dict[Mapping, str] = {}
        self._end_texts: dict[int, tuple[list[End], list[tuple[str, str]]]] = {}
        self._used: set[int] = set()
        self.used: Collection[int] = self._used  # provider rows

    def write_flat(self, compiled: CompiledQuery, host_rows: list[int], limit: int | None) -> str:
        """Return the requests of the first ``limit`` hosts without children.

        Args:
            host_rows: provider rows of all hosts, as the index of the cache found them.
        """
        cached = self._cache.flat_text
        stamp = self._state.changes.epoch, self._cache.flat_index.version, limit
        if cached is None or cached.stamp != stamp:
            assert compiled.plain is not None
            rows = host_rows[:limit]
            text = ",".join(self._write_fan(Fan((), (), "", compiled.plain.resources, tuple(rows)), None))
            cached = self._cache.flat_text = _FlatText(stamp, text, rows)
            if len(text) > _CACHE_MAX_BYTES:
                self._cache.flat_text = None
        self._check_size(len(cached.text))
        self.used = cached.rows
        return cached.text

    def write(self, candidates: Iterable[RowCandidate | Fan | TreeCandidates], *, limit: int | None = None) -> str:
        """Return the requests of all candidates, or of the first ``limit``."""
        texts: list[str] = []
        maximum = math.inf if limit is None else limit
        count = size = 0
        for each in candidates:
            left = maximum - count
            if left <= 0:
                break
            if isinstance(each, RowCandidate):
                text, more = self._write_candidate(each), 1
            else:
                text, more = (
                    self._write_run(each, left) if isinstance(each, Fan) else self._write_tree(each, left, size=size)
                )
            if more:
                texts.append(text)
                count += more
                size += len(text)
                self._check_size(size)
        return ",".join(texts)

    def _write_run(self, fan: Fan, limit: float) -> tuple[str, int]:
        """Return the requests of successive hosts without children, and their number."""
        parts = self._write_fan(fan, None if limit == math.inf else int(limit))
        return ",".join(parts), len(parts)

    def _write_tree(self, tree: TreeCandidates, limit: float, *, size: int) -> tuple[str, int]:
        """Return the requests of a tree, cached or new, and their number.

        Args:
            size: characters of the response so far.
        """
        entry = self._cache.trees.get(tree.anchor)
        if entry is None or not entry.serves(limit):
            all_used, self._used = self._used, set()
            parts: list[str] = []
            for each in tree.candidates:
                left = limit - len(parts)
                if left <= 0:
                    break
                more = self._write_parts(each, None if left == math.inf else int(left))
                parts += more
                size += sum(map(len, more))
                self._check_size(size)
            entry = _TreeText(",".join(parts), len(parts), frozenset(self._used), limit)
            self._used = all_used
            self._cache.store(tree.anchor, entry)
        self._used |= entry.used
        return entry.text, entry.requests

    def _write_parts(self, part: RowCandidate | Fan | Sheaf, limit: int | None) -> list[str]:
        if isinstance(part, RowCandidate):
            return [self._write_candidate(part)]
        return self._write_fan(part, limit) if isinstance(part, Fan) else self._write_sheaf(part, limit)

    def _write_candidate(self, candidate: RowCandidate) -> str:
        text = self._texts.get(candidate.takes) or self._allocations(candidate.takes)
        if not self._form.has_mappings:
            return f'{{"allocations":{text}}}'
        mapping_of = self._mapping_texts
        mappings = ",".join([mapping_of.get(each) or self._mapping(each) for each in candidate.mappings])
        return f'{{"allocations":{text},"mappings":{{{mappings}}}}}'

    def _write_fan(self, fan: Fan, limit: int | None) -> list[str]:
        """Return the requests of a fan; their common part is written once."""
        rows = fan.rows[:limit]
        self._used.update(rows)
        uuids = map(self._state.providers.uuids.__getitem__, rows)
        opening, closing = ("{", "}") if self._form.has_provider_keys else ("[", "]")
        start, end = self._around(fan.demand)
        common = f"{self._allocations(fan.takes)[1:-1]}," if fan.takes else ""
        before = f'{{"allocations":{opening}{common}{start}'
        if not self._form.has_mappings:
            return [f"{before}{uuid}{end}{closing}}}" for uuid in uuids]
        mappings = "".join([f"{self._mapping_texts.get(each) or self._mapping(each)}," for each in fan.mappings])
        between = f'{end}{closing},"mappings":{{{mappings}"{fan.suffix}":["'
        return [f'{before}{uuid}{between}{uuid}"]}}}}' for uuid in uuids]

    def _write_sheaf(self, sheaf: Sheaf, limit: int | None) -> list[str]:
        """Return the requests of a sheaf; its beginning is written once, and its ends are usually cached."""
        opening, closing = ("{", "}") if self._form.has_provider_keys else ("[", "]")
        before = "".join([f"{self._provider_texts.get(each) or self._allocation(each)}," for each in sheaf.takes])
        ends = self._write_ends(sheaf.ends if limit is None or limit >= len(sheaf.ends) else sheaf.ends[:limit])
        if not self._form.has_mappings:
            return [f'{{"allocations":{opening}{before}{allocations}{closing}}}' for allocations, _ in ends]
        mappings = "".join([f"{self._mapping_texts.get(each) or self._mapping(each)}," for each in sheaf.mappings])
        before = f'{{"allocations":{opening}{before}'
        between = f'{closing},"mappings":{{{mappings}'
        return [f"{before}{allocations}{between}{end_mappings}}}}}" for allocations, end_mappings in ends]

    def _write_ends(self, ends: list[End]) -> list[tuple[str, str]]:
        """Return, and cache, the allocations and mappings of the ends of a sheaf."""
        cached = self._end_texts.get(id(ends))
        if cached is not None:
            return cached[1]
        if len(self._end_texts) >= _ENDS_MAX:
            self._end_texts.clear()
        allocation_of, mapping_of = self._provider_texts, self._mapping_texts
        texts = [
            (
                ",".join([allocation_of.get(each) or self._allocation(each) for each in takes]),
                ",".join([mapping_of.get(each) or self._mapping(each) for each in mappings]),
            )
            for takes, mappings in ends
        ]
        # The entry keeps the list alive, so that its id stays unique.
        self._end_texts[id(ends)] = ends, texts
        return texts

    def _around(self, demand: Iterable[tuple[int, int]]) -> tuple[str, str]:
        """Return the text before and after a provider uuid in an allocation."""
        name_of = self._state.class_ids.name_of
        resources = ",".join([f'"{name_of(class_id)}":{amount}' for class_id, amount in demand])
        if self._form.has_provider_keys:
            return '"', f'":{{"resources":{{{resources}}}}}'
        return '{"resource_provider":{"uuid":"', f'"}},"resources":{{{resources}}}}}'

    def _check_size(self, size: int) -> None:
        if size > self._bytes_max:
            raise BadRequest(
                f"The candidates need more than {self._bytes_max:,} bytes (limit placement.candidates_max_bytes); "
                "ask for fewer with the parameter limit."
            )

    def _allocations(self, takes: tuple[Take, ...]) -> str:
        """Return, and cache, the allocations of a candidate; takes from one provider are adjacent."""
        parts, start, of_provider = [], 0, self._provider_texts
        for end in range(1, len(takes) + 1):
            if end == len(takes) or takes[end][0] != takes[start][0]:
                own = takes[start:end]
                parts.append(of_provider.get(own) or self._allocation(own))
                start = end
        text = ",".join(parts)
        text = self._texts[takes] = f"{{{text}}}" if self._form.has_provider_keys else f"[{text}]"
        return text

    def _allocation(self, takes: tuple[Take, ...]) -> str:
        row = takes[0][0]
        self._used.add(row)
        start, end = self._around([(class_id, amount) for _, class_id, amount in takes])
        text = self._provider_texts[takes] = f"{start}{self._state.providers.uuids[row]}{end}"
        return text

    def _mapping(self, mapping: Mapping) -> str:
        suffix, rows = mapping
        uuids = self._state.providers.uuids
        quoted = ",".join(f'"{uuids[row]}"' for row in rows)
        text = self._mapping_texts[mapping] = f'"{suffix}":[{quoted}]'
        return text
