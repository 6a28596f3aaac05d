"""``roost why``: explain a stored decision."""

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click
import msgspec
from click.core import ParameterSource

from roost.cli.backend import Api, BackendOptions, backend_options, open_api
from roost.cli.complete_name import NameType
from roost.cli.output.output_options import Output, format_option, output_options
from roost.cli.resolve_name import find_decision, find_instance
from roost.cli.text.moments import parse_moment
from roost.cli.text.plain_text import escape_text
from roost.cli.views.decision_view import DECISIONS
from roost.errors import AccessDenied, AuditFailed, BadSettings, NotFound

if TYPE_CHECKING:
    from roost.model.settings.roost_settings import Settings

# Sections of settings that decisions do not read.
_OTHER_SECTIONS = frozenset({"store", "conductor", "placement", "notifications", "nova", "agent"})

_FAULTS_MAX = 5  # instances of a decision whose faults are shown

_HELP = """Explain a stored decision, on the state at the time of the decision.

NAME is the name or uuid of an instance, for its newest decision; the uuid of a decision, or its first digits; `last`;
or `last-refused`.

For a refusal, print the effect of each rule, the nearest hosts, the changes that would help, and whether the request
could ever fit. For a granted decision, print the ranking and the multipliers that would change it. With --replay,
--config and --nova-conf select the settings of the replay, not a database.
"""


@click.command("why", help=_HELP, short_help="Explain a stored decision.")
@click.argument("name", type=NameType("decision"), metavar="[NAME]", required=False)
@click.option("--replay", "is_replayed", is_flag=True, help="Decide again on the same state, and compare.")
@click.option(
    "--instance",
    type=NameType("instance"),
    metavar="INSTANCE",
    help="List all decisions of this instance instead, newest first.",
)
@click.option("--summary", "is_summary", is_flag=True, help="Summarise refusals by reason and request instead.")
@click.option(
    "--since", metavar="TIME", help="With --summary: only refusals since then, like 90m, 12h or 7d ago, or 2026-01-31."
)
@click.option("--top", type=click.IntRange(min=1), default=20, show_default=True, help="Number of rows in text output.")
@format_option
@output_options(can_watch=False)
@backend_options
def why(
    *,
    name: str | None,
    is_replayed: bool,
    instance: str | None,
    is_summary: bool,
    since: str | None,
    top: int,
    output: Output,
    backend: BackendOptions,
) -> None:
    """Run ``roost why``."""
    if (name is not None) + is_summary + (instance is not None) != 1:
        raise click.UsageError("give one of NAME, --instance and --summary")
    if is_replayed and name is None:
        raise click.UsageError("--replay needs NAME")
    if since is not None and not is_summary:
        raise click.UsageError("--since needs --summary")
    if is_replayed:
        assert name is not None, "checked above"
        _replay(backend, name, top=top, output=output)
    elif is_summary:
        _summarise(backend, 0.0 if since is None else parse_moment(since, option="--since"), top=top, output=output)
    elif instance is not None:
        _list_decisions(backend, instance, output=output)
    else:
        assert name is not None, "checked above"
        _explain(backend, name, output=output)


def _explain(backend: BackendOptions, name: str, *, output: Output) -> None:
    from roost.api.v1.schemas.decisions import ShownWhy
    from roost.cli.text.why_text import to_text

    with open_api(backend, is_read_only=True) as api:
        answer = api.request("GET", "decisions", find_decision(api, name), "why", query={"plans": "true"})
        faults = _build_faults(api, answer["decision"])
    output.print_document(answer, lambda: [to_text(msgspec.convert(answer, ShownWhy)).removesuffix("\n"), *faults])


def _build_faults(api: Api, decision: Mapping[str, Any]) -> list[str]:
    """Return why instances of a granted decision are not on their hosts now, as lines; for the first few only."""
    lines = []
    for pick in decision["picks"][:_FAULTS_MAX]:
        with suppress(NotFound, AccessDenied):
            instance = api.request("GET", "instances", pick["instance_uuid"])
            if instance["fault"] and instance["decision"] == decision["uuid"]:
                name = instance["name"] or instance["uuid"]
                lines.append(escape_text(f"instance {name} is {instance['status']}: {instance['fault']}"))
    return ["", *lines] if lines else []


def _summarise(backend: BackendOptions, since_s: float, *, top: int, output: Output) -> None:
    from roost.cli.text.why_text import summary_text
    from roost.model.evidence.summary import Summary

    with open_api(backend, is_read_only=True) as api:
        answer = api.request("GET", "refusals", query={"since": str(since_s)})
    output.print_document(answer, lambda: [summary_text(msgspec.convert(answer, Summary), top=top).removesuffix("\n")])


def _list_decisions(backend: BackendOptions, instance: str, *, output: Output) -> None:
    with open_api(backend, is_read_only=True) as api:
        decisions = api.list_all("decisions", instance=find_instance(api, instance, with_deleted=True))
    if not decisions:
        raise NotFound("decision of the instance", instance)
    output.print_document(decisions, lambda: DECISIONS.to_lines(decisions, "table"))


def _replay(backend: BackendOptions, name: str, *, top: int, output: Output) -> None:
    """Replay a decision, under its own settings or those of the command line.

    Raises:
        AuditFailed: the replay under its own settings differs.
    """
    from roost.api.v1.schemas.decisions import ShownReplay, show_replay
    from roost.app import open_reader, settings_of
    from roost.cli.text.why_text import replay_text

    config, backend = backend.config, msgspec.structs.replace(backend, config=None)
    if not backend.is_local and backend.url is None:  # Here --config selects no database.
        backend = msgspec.structs.replace(backend, url=os.environ.get("ROOST_URL") or None)
    nova_conf_source = click.get_current_context().get_parameter_source("nova_conf")
    is_own = config is None and nova_conf_source is not ParameterSource.COMMANDLINE
    settings = None if is_own else settings_of(config, os.environ)
    with open_api(backend, is_read_only=True) as api:
        uuid = find_decision(api, name)
        if settings is not None and backend.is_local:
            # The API refuses settings that name code, which are harmless in this process.
            with open_reader(None, backend.data, database=backend.database, environ=os.environ) as roost:
                result = show_replay(roost.replay(uuid, settings))
        else:
            body = {} if settings is None else {"settings": _decision_sections(settings)}
            result = msgspec.convert(api.request("POST", "decisions", uuid, "replay", body=body), ShownReplay)
    output.print_document(result, lambda: [replay_text(result, top=top).removesuffix("\n")])
    if is_own and not result.is_same:
        raise AuditFailed(f"the replay of decision {uuid} differs in: {', '.join(result.fields)}")


def _decision_sections(settings: "Settings") -> dict[str, dict[str, Any]]:
    """Return the settings of decisions, as sections of a settings file.

    Raises:
        BadSettings: a setting names code that is not the default.
    """
    from roost.model.settings.roost_settings import FilterScheduler
    from roost.settings import CODE_SETTINGS, values_of

    sections: dict[str, dict[str, Any]] = {}
    defaults = msgspec.to_builtins(FilterScheduler())
    for (section, key), value in values_of(settings).items():
        if section == "filter_scheduler" and key in CODE_SETTINGS:
            if value != defaults[key]:
                raise BadSettings(f"{section}.{key}", "names code, which a server does not accept; use --data")
        elif section not in _OTHER_SECTIONS:
            sections.setdefault(section, {})[key] = value
    return sections
