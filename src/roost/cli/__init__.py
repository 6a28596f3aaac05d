"""The ``roost`` command: one file a noun, loaded when it is used."""

import importlib
import sys
import traceback
from typing import ClassVar

import click

from roost import __version__
from roost.cli import interrupt
from roost.errors import RoostError

# What the shell sees where no error says otherwise; those of errors are beside them in ``roost.errors``.
EXIT_CODE_FAULT = 70


class _ReadEnough(Exception):
    """Whoever reads the output has closed it; click would call that a failure."""


class _Lazy(click.Group):
    """Commands by name; the module of one is imported when it is asked for."""

    modules: ClassVar[dict[str, str]] = {
        "audit": "roost.cli.audit",
        "completion": "roost.cli.completion",
        "db": "roost.cli.db",
        "demo": "roost.cli.demo",
        "replay": "roost.cli.replay",
    }

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self.modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module = self.modules.get(cmd_name)
        if module is None:
            return None
        command = getattr(importlib.import_module(module), cmd_name)
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> object:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            raise _ReadEnough from None
        return result


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def roost() -> None:
    """Decide where every workload runs, and show why."""


def main() -> None:
    """Run the command line; errors are one sentence on standard error."""
    try:
        interrupt.watch()
        code = roost.main(prog_name="roost", standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt):
        code = interrupt.exit_code()
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except RoostError as error:
        click.echo(f"roost: {error}", err=True)
        code = error.exit_code
    except _ReadEnough:
        # Nothing is wrong, and nothing more can be written.
        sys.stdout = None  # Or the interpreter would flush into the broken pipe.
        code = 0
    except Exception:  # noqa: BLE001  # whatever it is, the shell must see that it is ours
        traceback.print_exc()
        click.echo("roost: this is a fault of roost itself; please report it with the lines above", err=True)
        code = EXIT_CODE_FAULT
    sys.exit(code if isinstance(code, int) else 0)
