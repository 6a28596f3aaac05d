"""The options of output, and their evaluation."""

import math
import time
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from itertools import islice
from typing import Any, Literal, TypeVar

import click
import msgspec

from roost.cli import signals
from roost.cli.output.documents import to_json, to_yaml
from roost.cli.output.list_view import ListView, Row
from roost.cli.output.sections import object_lines
from roost.cli.text import terminal
from roost.cli.text.plain_text import escape_text, format_time
from roost.errors import Unavailable

Command = TypeVar("Command", bound=Callable[..., Any])
Form = Literal["table", "wide", "json", "yaml", "csv"]
_LIST_FORMS: tuple[Form, ...] = ("table", "wide", "json", "yaml", "csv")
_OBJECT_FORMS: tuple[Form, ...] = ("table", "json", "yaml")
_WATCH_MIN_S, _WATCH_MAX_S = 0.1, 86_400.0
_CLEAR = "\x1b[H\x1b[2J"


class _Period(click.FloatRange):
    """A period in seconds. Unlike its base, it refuses NaN, which is outside of every range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds = super().convert(value, param, ctx)
        if math.isnan(seconds):
            self.fail(f"{value!r} is not a number of seconds", param, ctx)
        return seconds


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """The form of the output of one command."""

    form: Form = "table"
    columns: tuple[str, ...] = ()
    sort: tuple[str, ...] = ()
    limit: int | None = None
    watch_s: float | None = None

    @property
    def is_text(self) -> bool:
        """Whether people read the output."""
        return self.form in {"table", "wide"}

    def print_document(
        self, document: object, lines: Callable[[], Iterable[str]], *, is_indented: bool | None = None
    ) -> None:
        """Print an object as JSON or YAML, or as lines. The lines must be escaped.

        Args:
            is_indented: whether JSON has several lines; None: only on a terminal.
        """
        if self.is_text:
            text = "\n".join(lines())
            click.echo(text, nl=bool(text))
        else:
            click.echo(to_yaml(document) if self.form == "yaml" else to_json(document, is_indented=is_indented))

    def print_entry(self, document: object, line: str) -> None:
        """Print one entry of an endless list: a line of text or of JSON, or a YAML document."""
        if self.form == "yaml":
            click.echo(f"---\n{to_yaml(document)}")
        else:
            click.echo(line if self.is_text else to_json(document, is_indented=False))

    def print_object(self, document: Mapping[str, object]) -> None:
        """Print an object as JSON or YAML, or as sections of its fields."""
        self.print_document(document, lambda: object_lines(document))

    def print_rows(self, view: ListView, rows: Iterable[Row]) -> None:
        """Print a list, in the form, order and number that the options give.

        Raises:
            click.UsageError: a column does not exist.
        """
        view.find_columns([*self.columns, *(key.removeprefix("-") for key in self.sort)])  # Refuse before a request.
        remaining = iter(view.sort(rows, self.sort))
        shown = list(remaining if self.limit is None else islice(remaining, self.limit))
        if self.form == "csv":
            click.echo(view.to_csv(shown, self.columns))
            return
        document = view.pick(shown, self.columns) if self.columns and not self.is_text else shown
        self.print_document(
            document, lambda: view.to_lines(shown, "wide" if self.form == "wide" else "table", self.columns)
        )
        if self.is_text and self.limit is not None and next(remaining, None) is not None:
            click.echo(f"more {view.nouns} exist; raise --limit to see them", err=True)

    def repeat(self, show: Callable[[], None]) -> None:
        """Show once or, with ``--watch``, again and again until Ctrl-C.

        Raises:
            Unavailable: the server does not answer at the start. Later, this is only a note.
        """
        if self.watch_s is None:
            show()
            return
        is_first = True
        while True:
            self._start_picture(is_first=is_first)
            try:
                show()
            except Unavailable as error:
                if is_first:
                    raise
                click.echo(f"roost: {escape_text(str(error))}; trying again", err=True)
            is_first = False
            time.sleep(self.watch_s)
            signals.check()

    def _start_picture(self, *, is_first: bool) -> None:
        """Begin a repetition: on a terminal on an empty screen, else after an empty line; of YAML, a new document."""
        if self.form == "yaml":
            click.echo("---")
        if not self.is_text:
            return
        if terminal.is_terminal():
            click.echo(f"{_CLEAR}every {self.watch_s:g} s, now {format_time(time.time())}; Ctrl-C ends\n", color=True)
        elif not is_first:
            click.echo()


def output_options(
    view: ListView | None = None, *, can_watch: bool = True, has_json: bool = True
) -> Callable[[Command], Command]:
    """Add the options of output, as one argument ``output``.

    Args:
        view: the columns of a list; None: the command prints an object.
        can_watch: whether the command can be repeated, since it only reads.
        has_json: whether to add ``--json``; False: the command has an option of this name.
    """

    def add_options(command: Command) -> Command:
        @wraps(command)
        def run(*arguments: Any, **more: Any) -> Any:
            return command(*arguments, output=_read_output(more), **more)

        with_options: Any = run
        for option in reversed(_options(view, can_watch=can_watch, has_json=has_json)):
            with_options = option(with_options)
        return with_options  # type: ignore[no-any-return]  # has the command's parameters except ``output``

    return add_options


def format_option(command: Command) -> Command:
    """Add ``--format text|json``, the earlier form of ``--output``. Put it above ``output_options``."""
    return click.option("--format", "old_form", type=click.Choice(["text", "json"]), hidden=True)(command)


def _options(view: ListView | None, *, can_watch: bool, has_json: bool) -> list[Callable[[Any], Any]]:
    forms = _OBJECT_FORMS if view is None else _LIST_FORMS
    options = [
        click.option("-o", "--output", "output_form", type=click.Choice(forms), help="Form of the output.  [table]"),
    ]
    if has_json:
        options.append(click.option("--json", "is_json", is_flag=True, help="Same as --output json."))
    if view is not None:
        names = ", ".join(column.name for column in view.columns)
        options += [
            click.option(
                "--columns", "column_names", metavar="LIST", help=f"Columns to show, separated by commas: {names}."
            ),
            click.option(
                "--sort",
                "sort_keys",
                metavar="LIST",
                help="Columns to sort by, separated by commas; -COLUMN sorts in descending order.",
            ),
            click.option(
                "--limit", "row_limit", type=click.IntRange(min=1), metavar="N", help="Show at most N rows.  [all]"
            ),
        ]
    if can_watch:
        options.append(
            click.option(
                "--watch",
                "watch_s",
                type=_Period(_WATCH_MIN_S, _WATCH_MAX_S),
                metavar="SECONDS",
                help="Repeat the output until Ctrl-C.",
            )
        )
    return options


def _read_output(values: dict[str, Any]) -> Output:
    """Take the options of output out of the arguments of a command.

    Raises:
        click.UsageError: two options give different forms.
    """
    given = {values.pop("output_form"), "json" if values.pop("is_json", False) else None}
    old_form = values.pop("old_form", None)
    given |= {"table" if old_form == "text" else old_form}
    forms = given - {None}
    if len(forms) > 1:
        raise click.UsageError(f"the output cannot be both {' and '.join(sorted(map(str, forms)))}")
    return Output(
        form=next(iter(forms), "table"),
        columns=_split(values.pop("column_names", None)),
        sort=_split(values.pop("sort_keys", None)),
        limit=values.pop("row_limit", None),
        watch_s=values.pop("watch_s", None),
    )


def _split(text: str | None) -> tuple[str, ...]:
    return tuple(word for word in map(str.strip, (text or "").split(",")) if word)
