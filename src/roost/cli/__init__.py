"""The ``roost`` command, and replacements of upstream commands. A command's module is imported on first use.

``commands``: the commands, one file per noun.
``instance``: ``roost instance``, one file per group of actions.
``output``: the options and the forms of output.
``views``: lists and sections of hosts, instances, operations and findings.
``text``: tables, progress bars, and the text output of commands.
``replays``: the forms of ``roost replay``.
``connection``: the server and token of a command, and profiles of them.
``backend``: the API client of the commands, over HTTP or in process.
``complete_name``: completion of names in a shell.
``resolve_name``: objects by the names that users give.
``options``: options shared by several commands.
``serve_options``: options of the server commands, and their evaluation.
``upkeep_record``: the record of audits and backups.
``capacity_request``: flavors and requests of ``roost capacity``.
``signals``: Ctrl-C, SIGTERM and SIGHUP.
``manage``: ``roost-manage``, for scripts that call ``nova-manage placement``.
``placement_manage``: ``roost-placement-manage``, for ``placement-manage``.
``placement_status``: ``roost-placement-status``, for ``placement-status``.
``placement_options``: the common code of these three commands.
"""

import difflib
import importlib
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import click

from roost import __version__
from roost.cli import signals
from roost.cli.text.help_examples import add_examples
from roost.cli.text.plain_text import brief_fault, escape_text
from roost.errors import BadSettings, RoostError

# The exit code of an unexpected exception. Expected errors define theirs in ``roost.errors``.
EXIT_CODE_FAULT = 70


class _OutputClosed(Exception):
    """The reader of the output closed the pipe. The exit code is then 0; with click it would be 1."""


class _LazyGroup(click.Group):
    """A group that imports the module of a command on first use."""

    # The commands in the order of the help, with the module of each.
    sections: ClassVar[dict[str, dict[str, str]]] = {
        "Servers and agents": {
            "up": "roost.cli.commands.up",
            "placement": "roost.cli.commands.placement",
            "agent": "roost.cli.commands.agent",
            "conductor": "roost.cli.commands.conductor",
            "nova-scheduler": "roost.cli.commands.nova_scheduler",
        },
        "Instances": {
            "instance": "roost.cli.instance.instance",
            "flavor": "roost.cli.commands.flavor",
            "image": "roost.cli.commands.image",
            "group": "roost.cli.commands.group",
            "migration": "roost.cli.commands.migration",
            "operation": "roost.cli.commands.operation",
        },
        "Fleet": {
            "status": "roost.cli.commands.status",
            "host": "roost.cli.commands.host",
            "service": "roost.cli.commands.service",
            "aggregate": "roost.cli.commands.aggregate",
            "zone": "roost.cli.commands.zone",
            "fleet": "roost.cli.commands.fleet",
        },
        "Decisions": {
            "why": "roost.cli.commands.why",
            "decision": "roost.cli.commands.decision",
            "capacity": "roost.cli.commands.capacity",
            "decide": "roost.cli.commands.decide",
            "plan": "roost.cli.commands.plan",
            "replay": "roost.cli.commands.replay",
            "lab": "roost.cli.commands.lab",
            "demo": "roost.cli.commands.demo",
        },
        "Administration": {
            "login": "roost.cli.commands.login",
            "profile": "roost.cli.commands.profile",
            "config": "roost.cli.commands.config",
            "db": "roost.cli.commands.db",
            "audit": "roost.cli.commands.audit",
            "import": "roost.cli.commands.import_",
            "token": "roost.cli.commands.token",
            "policy": "roost.cli.commands.policy",
            "change": "roost.cli.commands.change",
            "events": "roost.cli.commands.events",
            "completion": "roost.cli.commands.completion",
        },
    }
    modules: ClassVar[dict[str, str]] = {name: module for each in sections.values() for name, module in each.items()}

    # Short names, which help does not list.
    aliases: ClassVar[dict[str, tuple[str, ...]]] = {"drain": ("host", "drain"), "ps": ("instance", "list")}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self.modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module = self.modules.get(cmd_name)
        if module is None:
            return None
        loaded = importlib.import_module(module)
        # A command named like a Python keyword has a trailing underscore.
        name = cmd_name.replace("-", "_")
        command = getattr(loaded, name, None) or getattr(loaded, f"{name}_")
        assert isinstance(command, click.Command)
        add_examples(cmd_name, command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one table of commands per section, with columns of the same width."""
        width = max(map(len, self.modules))
        for title, modules in self.sections.items():
            commands = ((name, self.get_command(ctx, name)) for name in modules)
            rows = [(name.ljust(width), command.get_short_help_str()) for name, command in commands if command]
            with formatter.section(title):
                formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command; suggest similar names, and understand ``help COMMAND``."""
        if args[0] == "help":
            args = [*args[1:], "--help"]
            if args == ["--help"]:
                click.echo(ctx.get_help(), color=ctx.color)
                ctx.exit()
        if args[0] in self.aliases:
            args = [*self.aliases[args[0]], *args[1:]]
        if args[0] not in self.modules and not args[0].startswith("-") and not ctx.resilient_parsing:
            close = difflib.get_close_matches(args[0], self.modules, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise click.UsageError(f"No such command {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        with _flush_output():  # The parser of the arguments prints help texts.
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> object:
        with _flush_output():
            return super().invoke(ctx)


@contextmanager
def _flush_output() -> Iterator[None]:
    """Flush standard output at the end, and raise a write error as a ``RoostError``."""
    try:
        try:
            yield
        finally:
            if sys.stdout is not None:  # The parent process may have closed it.
                sys.stdout.flush()
    except BrokenPipeError:
        sys.stdout = None  # Otherwise the interpreter flushes the closed pipe again at exit.
        raise _OutputClosed from None
    except OSError as error:
        if error.filename is not None:  # Errors of open streams, such as standard output, have no file name.
            raise
        sys.stdout = None
        raise RoostError(f"the output cannot be written: {error.strerror}") from None


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def roost() -> None:
    """Place every workload, and explain each decision."""


def main() -> None:
    """Run the command line. Print an error as one sentence on standard error."""
    try:
        signals.watch()
        code = roost.main(prog_name="roost", standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt):
        code = signals.exit_code()
    except click.ClickException as error:
        _print_usage_error(error)
        code = error.exit_code
    except RoostError as error:
        for each in (error, *(error.others if isinstance(error, BadSettings) else ())):
            _print_error(str(each))
        code = error.exit_code
    except _OutputClosed:
        code = 0  # The reader, such as ``head``, needs no more output.
    except Exception:  # noqa: BLE001  # the exit code must mark every unexpected exception as a bug
        traceback.print_exc()
        click.echo("roost: this is a bug in roost; please report it with the lines above", err=True)
        code = EXIT_CODE_FAULT
    sys.exit(code if isinstance(code, int) else 0)


# Names of click for types, and their words in messages.
_KINDS = {"integer": "whole number", "float": "number"}
_KIND = re.compile(r"is not a valid (integer|float)(?: range)?")


def _print_usage_error(error: click.ClickException) -> None:
    """Print a command-line error, with a pointer to the help of the command."""
    message = _KIND.sub(lambda match: f"is not a {_KINDS[match[1]]}", error.format_message())
    message = message.replace("\n\t", " ")  # The choices of a missing option are on lines of their own.
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()  # Without arguments, print the help instead.
    elif isinstance(error, click.UsageError) and error.ctx is not None:
        pointer = f"see `{error.ctx.command_path} --help`"
        _print_error(
            f"{message} {pointer.capitalize()}" if message.endswith("?") else f"{message.rstrip('.')}; {pointer}"
        )
    else:
        _print_error(message)


def _print_error(sentence: str) -> None:
    """Write one line to standard error, with unprintable characters escaped."""
    click.echo(f"roost: {escape_text(brief_fault(sentence))}", err=True)
