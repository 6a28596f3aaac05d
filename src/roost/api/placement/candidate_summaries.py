"""Provider summaries of candidates as JSON, cached until a provider changes."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from roost.api.placement.candidate_json import Form
from roost.engine.columns.inventory_columns import ClassColumns
from roost.engine.columns.state import State
from roost.engine.columns.types import Cells


class _Template(NamedTuple):
    """The summary of a provider without its usage."""

    token: object  # the same until inventories, traits or tree position change
    text: str
    class_ids: tuple[int, ...]  # classes in order of their placeholders for usage


class Summaries:
    """The provider summaries of one state in one form.

    A text is valid until the usage of its provider changes (``changes.providers``). A template is valid until
    inventories, traits or tree position change, which is checked when ``changes.epoch`` rises.
    """

    def __init__(self, state: State, form: Form) -> None:
        self._state = state
        self._form = form
        self._templates: dict[int, _Template] = {}  # by provider row
        self._names: dict[int, str] = {}  # of classes in templates
        self._texts: list[str] = []  # by provider row; empty: invalid
        self._epoch = -1
        self._position = 0

    def write(self, used: Collection[int], *, while_active: Callable[[Iterable[int]], Iterable[int]] = iter) -> str:
        """Return the summaries for candidates on these providers.

        Args:
            while_active: wraps long iterations; its errors stop the work without losing texts.
        """
        self._catch_up()
        rows, text_of = self._rows(used), self._texts.__getitem__
        texts = list(map(text_of, rows))
        if not all(texts):
            cells = {class_id: each.used.each for class_id, each in self._columns().items()}
            for row in while_active([row for row, text in zip(rows, texts, strict=True) if not text]):
                self._texts[row] = self._text(row, cells)
            texts = list(map(text_of, rows))
        return ",".join(texts)

    def _rows(self, used: Collection[int]) -> list[int]:
        providers = self._state.providers
        if not self._form.has_trees or not providers.tree:
            return sorted(used)
        roots = sorted({providers.root.each[row] for row in used})
        return [row for root in roots for row in providers.rows_of_tree(root)]

    def _columns(self) -> dict[int, ClassColumns]:
        """Return the classes in summaries."""
        class_ids = self._form.classes
        return {
            class_id: columns
            for class_id, columns in self._state.classes.items()
            if columns.holders and (class_ids is None or class_id in class_ids)
        }

    def _catch_up(self) -> None:
        """Drop the texts of changed providers; drop all texts and templates if a class was renamed."""
        state, changes = self._state, self._state.changes
        touched = changes.providers.since(self._position) if changes.epoch == self._epoch else None
        if touched is None:
            name_of = state.class_ids.name_of
            if any(id_ not in state.classes or name_of(id_) != name for id_, name in self._names.items()):
                self._templates.clear()
                self._names.clear()
            self._texts = [""] * len(state.providers)
        else:
            for row in touched:
                self._texts[row] = ""
        self._epoch, self._position = changes.epoch, changes.providers.position

    def _text(self, row: int, cells: Mapping[int, Cells]) -> str:
        """Write the summary of a provider, with a new template if the old one is invalid."""
        providers, version_of = self._state.providers, self._state.content_versions.get
        parent, root = providers.parent.each[row], providers.root.each[row]
        token = version_of(("inventories", row)), version_of(("traits", row)), parent, root
        template = self._templates.get(row)
        if template is None or template.token != token:
            template = self._templates[row] = self._template(row, token)
        return template.text % tuple([cells[class_id][row] for class_id in template.class_ids])

    def _template(self, row: int, token: object) -> _Template:
        state, form, name_of = self._state, self._form, self._state.class_ids.name_of
        uuids, offers, class_ids = state.providers.uuids, [], []
        for class_id, columns in sorted(self._columns().items()):
            if row not in columns.holders:
                continue
            name = self._names[class_id] = name_of(class_id)
            # The column of capacities is not exact: large capacities are clipped there.
            capacity = int((columns.total.each[row] - columns.reserved.each[row]) * columns.ratio.each[row])
            offers.append(f'"{name}":{{"capacity":{capacity},"used":%d}}')
            class_ids.append(class_id)
        text = f'"{uuids[row]}":{{"resources":{{{",".join(offers)}}}'
        if form.has_traits:
            traits = map(state.trait_ids.name_of, sorted(state.traits.labels_of(row)))  # in the order of creation
            text += ',"traits":[' + ",".join(f'"{name}"' for name in traits) + "]"
        if form.has_trees:
            parent, root = state.providers.parent.each[row], state.providers.root.each[row]
            parent_text = "null" if parent < 0 else f'"{uuids[parent]}"'
            text += f',"parent_provider_uuid":{parent_text},"root_provider_uuid":"{uuids[root]}"'
        return _Template(token, text + "}", tuple(class_ids))
