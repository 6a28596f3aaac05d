"""What candidates tell of each provider, as JSON, kept until something of it changes."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from roost.api.placement.candidate_json import Form
from roost.engine.capacity import ClassColumns
from roost.engine.state import State
from roost.engine.types import Amounts, Mask, Rows

_ROWS_MIN = 1024
_NEVER = -1  # no epoch, and no use


class _Template(NamedTuple):
    """The summary of a provider but for its use."""

    token: object  # equal as long as nothing but use changes
    text: str
    class_ids: tuple[int, ...]  # whose use is to be filled in


class Summaries:
    """The summaries of the providers of one state in one form.

    Whatever is asked for is held against the columns first: its inventories, labels and place in the tree
    where the epoch changed, its use always. So nobody has to tell this of changes.
    """

    def __init__(self, state: State, form: Form) -> None:
        self._state = state
        self._form = form
        self._forget()

    def _forget(self) -> None:
        self._texts: list[str] = []
        self._templates: list[_Template | None] = []
        self._epochs: Amounts = np.zeros(0, dtype=np.int64)  # by row: when its template was last found right
        self._used: dict[int, Amounts] = {}  # class -> by row: the use that its text tells
        self._names: dict[int, str] = {}  # of the classes in templates
        self._epoch = _NEVER

    def of(self, used: set[int], *, while_wanted: Callable[[Iterable[int]], Iterable[int]] = iter) -> str:
        """Return the summaries that belong to candidates which take from these providers.

        Args:
            while_wanted: what rows that take a while go through; what it raises ends this, and nothing is lost.
        """
        rows = self._rows(used)
        self._prepare()
        at: Rows = np.array(rows, dtype=np.intp)
        for row in while_wanted(at[self._epochs[at] != self._epoch].tolist()):
            self._renew(row)
        columns = self._columns()
        dirty = at[self._dirty(at, columns)]
        if len(dirty):
            cells = {class_id: each.used.each for class_id, each in columns.items()}
            for row in while_wanted(dirty.tolist()):
                template = self._templates[row]
                assert template is not None
                self._texts[row] = template.text % tuple([cells[class_id][row] for class_id in template.class_ids])
            for class_id, each in columns.items():
                self._used[class_id][dirty] = each.used.view[dirty]
        return ",".join(map(self._texts.__getitem__, rows))

    def _rows(self, used: set[int]) -> list[int]:
        providers = self._state.providers
        if not self._form.has_trees or not providers.tree:
            return sorted(used)
        roots = sorted({providers.root.each[row] for row in used})
        return [row for root in roots for row in providers.rows_of_tree(root)]

    def _columns(self) -> dict[int, ClassColumns]:
        """Return the classes that may be shown."""
        wanted = self._form.classes
        return {
            class_id: columns
            for class_id, columns in self._state.classes.items()
            if columns.holders and (wanted is None or class_id in wanted)
        }

    def _prepare(self) -> None:
        """Make room for every provider there is, and forget everything where a class has another name."""
        state, epoch = self._state, self._state.changes.epoch
        if epoch != self._epoch:
            name_of = state.class_ids.name_of
            if any(
                class_id not in state.classes or name_of(class_id) != name for class_id, name in self._names.items()
            ):
                self._forget()
            self._epoch = epoch
        more = len(state.providers) - len(self._templates)
        if more > 0:
            more = max(more, len(self._templates), _ROWS_MIN)
            self._templates += [None] * more
            self._texts += [""] * more
            self._epochs = np.concatenate([self._epochs, np.full(more, _NEVER, dtype=np.int64)])
            self._used.clear()

    def _dirty(self, at: Rows, columns: dict[int, ClassColumns]) -> Mask:
        """Say which rows have a text that tells another use, or none yet."""
        dirty: Mask = np.zeros(len(at), dtype=np.bool_)
        for class_id, each in columns.items():
            told = self._used.get(class_id)
            if told is None:
                told = self._used[class_id] = np.full(len(self._templates), _NEVER, dtype=np.int64)
            dirty |= told[at] != each.used.view[at]
        return dirty

    def _renew(self, row: int) -> None:
        """Make the template of a provider anew if what it says is no longer so."""
        providers, written = self._state.providers, self._state.content_versions.get
        parent, root = providers.parent.each[row], providers.root.each[row]
        token = written(("inventories", row)), written(("traits", row)), parent, root
        self._epochs[row] = self._epoch
        template = self._templates[row]
        if template is None or template.token != token:
            self._templates[row] = self._template(row, token)
            for told in self._used.values():
                told[row] = _NEVER

    def _template(self, row: int, token: object) -> _Template:
        state, form, name_of = self._state, self._form, self._state.class_ids.name_of
        uuids, offers, class_ids = state.providers.uuids, [], []
        for class_id, columns in sorted(self._columns().items()):
            if row not in columns.holders:
                continue
            name = self._names[class_id] = name_of(class_id)
            # Not the column of capacities, which is bounded where no amount could reach.
            capacity = int((columns.total.each[row] - columns.reserved.each[row]) * columns.ratio.each[row])
            offers.append(f'"{name}":{{"capacity":{capacity},"used":%d}}')
            class_ids.append(class_id)
        text = f'"{uuids[row]}":{{"resources":{{{",".join(offers)}}}'
        if form.has_traits:
            traits = sorted(map(state.trait_ids.name_of, state.traits.labels_of(row)))
            text += ',"traits":[' + ",".join(f'"{name}"' for name in traits) + "]"
        if form.has_trees:
            parent, root = state.providers.parent.each[row], state.providers.root.each[row]
            above = "null" if parent < 0 else f'"{uuids[parent]}"'
            text += f',"parent_provider_uuid":{above},"root_provider_uuid":"{uuids[root]}"'
        return _Template(token, text + "}", tuple(class_ids))
