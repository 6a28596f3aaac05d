"""Candidates as JSON, written from columns: no dictionary is made for what is shown."""

from collections.abc import Iterable

import msgspec

from roost.api.placement import versions
from roost.api.placement.versions import Version
from roost.engine.candidates import Mapping, RowCandidate, Take
from roost.engine.query import Demand
from roost.engine.state import State
from roost.errors import BadRequest


class Form(msgspec.Struct, frozen=True):
    """What an answer shows in a version."""

    are_allocations_named: bool  # by their providers, or a list
    has_mappings: bool
    has_traits: bool
    has_trees: bool  # of every provider used all of its tree, with parents and roots
    classes: frozenset[int] | None  # ids of those in summaries; None: all of them


def form_of(version: Version, classes: Iterable[int]) -> Form:
    """Return what a version shows where these classes are asked."""
    has_all = version >= versions.ALL_CLASSES_IN_SUMMARIES
    return Form(
        are_allocations_named=version >= versions.ALLOCATIONS_BY_PROVIDER,
        has_mappings=version >= versions.MAPPINGS,
        has_traits=version >= versions.CANDIDATES_BY_TRAITS,
        has_trees=version >= versions.NESTED_CANDIDATES,
        classes=None if has_all else frozenset(classes),
    )


class Requests:
    """The allocation requests of one answer, and the providers they use.

    Names need no escapes: classes and suffixes are letters, digits, dashes and underscores.
    """

    def __init__(self, state: State, form: Form, *, bytes_max: int) -> None:
        self._state = state
        self._form = form
        self._bytes_max = bytes_max
        self._texts: dict[tuple[Take, ...], str] = {}
        self._of_provider: dict[tuple[Take, ...], str] = {}
        self._mapped: dict[Mapping, str] = {}
        self.used: set[int] = set()  # provider rows

    def of_lone(self, anchors: list[int], demand: Demand) -> str:
        """Return the requests that each take the whole demand from one provider."""
        if not anchors:
            return ""
        uuids, resources = self._state.providers.uuids, self._resources(demand)
        if not self._form.are_allocations_named:
            before, behind = '{"allocations":[{"resource_provider":{"uuid":"', f'"}},"resources":{resources}}}]}}'
        else:
            before, behind = '{"allocations":{"', f'":{{"resources":{resources}}}}}'
            behind += ',"mappings":{"":["' if self._form.has_mappings else "}"
        shown = list(map(uuids.__getitem__, anchors))
        if self._form.has_mappings:
            end = '"]}}'
            shown = [f"{uuid}{behind}{uuid}" for uuid in shown]
        else:
            end = behind
        self._check_size(len(shown) * (len(shown[0]) + len(before) + len(end)))
        self.used.update(anchors)
        return f"{before}{f'{end},{before}'.join(shown)}{end}"

    def of(self, candidates: Iterable[RowCandidate]) -> str:
        """Return the requests of candidates."""
        texts, mapped, has_mappings = self._texts, self._mapped, self._form.has_mappings
        parts, size = [], 0
        for candidate in candidates:
            text = texts.get(candidate.takes) or self._allocations(candidate.takes)
            if has_mappings:
                mappings = ",".join([mapped.get(each) or self._mapping(each) for each in candidate.mappings])
                text = f'{{"allocations":{text},"mappings":{{{mappings}}}}}'
            else:
                text = f'{{"allocations":{text}}}'
            parts.append(text)
            size += len(text)
            if size > self._bytes_max:
                self._check_size(size)
        return ",".join(parts)

    def _check_size(self, size: int) -> None:
        if size > self._bytes_max:
            raise BadRequest(
                f"The candidates need more than {self._bytes_max:,} bytes (limit placement.candidates_max_bytes); "
                "ask for fewer with the parameter limit."
            )

    def _resources(self, demand: Iterable[tuple[int, int]]) -> str:
        name_of = self._state.class_ids.name_of
        return "{" + ",".join([f'"{name_of(class_id)}":{amount}' for class_id, amount in demand]) + "}"

    def _allocations(self, takes: tuple[Take, ...]) -> str:
        """Return, and keep, what a candidate takes; the takes from one provider stand together."""
        parts, start, of_provider = [], 0, self._of_provider
        for end in range(1, len(takes) + 1):
            if end == len(takes) or takes[end][0] != takes[start][0]:
                own = takes[start:end]
                parts.append(of_provider.get(own) or self._allocation(own))
                start = end
        text = ",".join(parts)
        text = self._texts[takes] = f"{{{text}}}" if self._form.are_allocations_named else f"[{text}]"
        return text

    def _allocation(self, takes: tuple[Take, ...]) -> str:
        row = takes[0][0]
        self.used.add(row)
        uuid, resources = (
            self._state.providers.uuids[row],
            self._resources([(class_id, amount) for _, class_id, amount in takes]),
        )
        if self._form.are_allocations_named:
            text = f'"{uuid}":{{"resources":{resources}}}'
        else:
            text = f'{{"resource_provider":{{"uuid":"{uuid}"}},"resources":{resources}}}'
        self._of_provider[takes] = text
        return text

    def _mapping(self, mapping: Mapping) -> str:
        suffix, rows = mapping
        uuids = self._state.providers.uuids
        shown = ",".join(f'"{uuids[row]}"' for row in rows)
        text = self._mapped[mapping] = f'"{suffix}":[{shown}]'
        return text
