"""The result of an audit."""

from typing import Annotated

import msgspec
from msgspec import Meta


class ShownFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A broken rule."""

    check: Annotated[str, Meta(description="Name of the check.")]
    subject: Annotated[str, Meta(description="The object that breaks the rule.")]
    problem: Annotated[str, Meta(description="The problem, as a phrase after the subject.")]


class AuditResult(msgspec.Struct, frozen=True, kw_only=True):
    """The findings of an audit; none: all rules hold."""

    findings: list[ShownFinding]
