"""The result of an audit, and the settings in force."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from roost.model.settings.setting_rows import SettingRow


class ShownFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A broken rule."""

    check: Annotated[str, Meta(description="Name of the check.")]
    subject: Annotated[str, Meta(description="The object that breaks the rule.")]
    problem: Annotated[str, Meta(description="The problem, as a phrase after the subject.")]


class AuditResult(msgspec.Struct, frozen=True, kw_only=True):
    """The findings of an audit; none: all rules hold."""

    findings: list[ShownFinding]


class ShownRule(msgspec.Struct, frozen=True, kw_only=True):
    """An enabled filter or weigher."""

    kind: Literal["filter", "weigher"]
    name: Annotated[str, Meta(description="Name, as in explanations.")]
    nova_name: Annotated[str, Meta(description="Name of the class in Nova; empty: Nova has none.")]
    multiplier: Annotated[
        float | None, Meta(description="Factor of a weigher in the score of a host; null: a filter has none.")
    ]
    settings: Annotated[list[str], Meta(description="Names of its settings, with their sections.")]


class ShownSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings in force."""

    fingerprint: Annotated[str, Meta(description="Hash of the settings that affect decisions, as in stored decisions.")]
    rules: Annotated[list[ShownRule], Meta(description="Enabled rules in the order of a decision, filters first.")]
    settings: Annotated[list[SettingRow], Meta(description="All settings, by section.")]
    needs_restart: Annotated[
        list[str], Meta(description="Settings with another value in the file since the start: they need a restart.")
    ]
