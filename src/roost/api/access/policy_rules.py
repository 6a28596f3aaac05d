"""The language of policy rules: checks of roles, projects and other rules.

.. code-block:: text

    rule   = all { "or" all }
    all    = part { "and" part }
    part   = "not" part | "(" rule ")" | check
    check  = "@" | "!" | kind ":" match

``@`` allows every client, ``!`` none. An empty rule is ``@``. In a match, ``%(name)s`` is an attribute of the target.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from roost.api.http import Identity

Target = Mapping[str, str]
Judge = Callable[[Identity, Target], bool]
_WORD = re.compile(r"""\s*(?:(?P<bracket>[()])|(?P<check>(?:'[^']*'|"[^"]*"|%\([^()\s]*\)s|[^\s()])+))""")
_LITERAL = re.compile(r"""'[^']*'|"[^"]*"|True|False|None|\d+""")
_SUBSTITUTE = re.compile(r"%\(([^()\s]+)\)s")
_DEPTH_MAX = 100


class BadRule(ValueError):
    """A rule is invalid; the text is the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A parsed rule."""

    judge: Callable[[Identity, Target, Mapping[str, Judge]], bool]  # the last argument: other rules, by name
    references: frozenset[str]  # names of referenced rules


_Check = Callable[[Identity, Target, Mapping[str, Judge]], bool]


def parse(text: str) -> Rule:
    """Parse a rule.

    Raises:
        BadRule: the rule is invalid.
    """
    parser = _Parser(text)
    return Rule(judge=parser.parse_rule(), references=frozenset(parser.references))


class _Parser:
    """A recursive-descent parser of one rule."""

    def __init__(self, text: str) -> None:
        self.references: set[str] = set()
        self._tokens = [*_tokenize(text), ""]
        self._at = 0
        self._depth = 0

    def parse_rule(self) -> _Check:
        if self._tokens == [""]:
            return _allow_all
        check = self._parse_or()
        if self._next:
            raise BadRule(f"{self._next!r} found, expected 'and', 'or' or the end")
        return check

    @property
    def _next(self) -> str:
        return self._tokens[self._at]

    def _accept(self, term: str) -> bool:
        is_next = self._next.lower() == term
        self._at += is_next
        return is_next

    def _parse_or(self) -> _Check:
        parts = [self._parse_and()]
        while self._accept("or"):
            parts.append(self._parse_and())
        return (
            parts[0]
            if len(parts) == 1
            else lambda identity, target, others: any(p(identity, target, others) for p in parts)
        )

    def _parse_and(self) -> _Check:
        parts = [self._parse_part()]
        while self._accept("and"):
            parts.append(self._parse_part())
        return (
            parts[0]
            if len(parts) == 1
            else lambda identity, target, others: all(p(identity, target, others) for p in parts)
        )

    def _parse_part(self) -> _Check:
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            raise BadRule(f"brackets and 'not' are nested deeper than {_DEPTH_MAX}")
        try:
            if self._accept("not"):
                part = self._parse_part()
                return lambda identity, target, others: not part(identity, target, others)
            if self._accept("("):
                check = self._parse_or()
                if not self._accept(")"):
                    raise BadRule("a bracket is not closed")
                return check
            return self._parse_check()
        finally:
            self._depth -= 1

    def _parse_check(self) -> _Check:
        term = self._next
        if not term:
            raise BadRule("ends before a check")
        if term.lower() in {")", "and", "or"}:
            raise BadRule(f"{term!r} found, expected a check")
        self._at += 1
        if term == "@":
            return _allow_all
        if term == "!":
            return _deny_all
        kind, colon, match = term.partition(":")
        if not colon:
            raise BadRule(f"{term!r} is not a check: expected @, ! or KIND:MATCH")
        return self._make_check(kind, match)

    def _make_check(self, kind: str, match: str) -> _Check:
        if kind == "rule":
            self.references.add(match)
            return lambda identity, target, others: others[match](identity, target)
        if kind == "role":
            return lambda identity, target, _others: _substitute(match, target).lower() in identity.roles
        if kind in {"http", "https"}:
            raise BadRule(f"{kind}:{match} queries another server, which is not supported")
        if _LITERAL.fullmatch(kind):
            literal = kind.strip("'\"")
            return lambda _identity, target, _others: _substitute(match, target) == literal
        if kind not in _ATTRIBUTES:
            raise BadRule(
                f"{kind!r} is not a kind of check; kinds are role, rule, {', '.join(_ATTRIBUTES)} and literals"
            )
        read = _ATTRIBUTES[kind]
        return lambda identity, target, _others: _substitute(match, target) in read(identity)


def _tokenize(text: str) -> Iterator[str]:
    at = 0
    while text[at:].strip():
        token = _WORD.match(text, at)
        if token is None:
            raise BadRule(f"{text[at:].strip()[:20]!r} is invalid")
        yield token["bracket"] or token["check"]
        at = token.end()


def _substitute(match: str, target: Target) -> str:
    """Substitute attributes of the target in a match; a missing attribute matches nothing."""
    return _SUBSTITUTE.sub(lambda placeholder: target.get(placeholder[1], "\0"), match)


def _allow_all(_identity: Identity, _target: Target, _others: Mapping[str, Judge]) -> bool:
    return True


def _deny_all(_identity: Identity, _target: Target, _others: Mapping[str, Judge]) -> bool:
    return False


# Attributes of a client, with their matching values.
_ATTRIBUTES: Mapping[str, Callable[[Identity], tuple[str, ...]]] = {
    "user_id": lambda identity: (identity.user_id,),
    "project_id": lambda identity: (identity.project_id,),
    "is_admin": lambda identity: ("True", "true", "1") if "admin" in identity.roles else ("False", "false", "0"),
    "system_scope": lambda identity: ("all",) if identity.is_system_scoped else (),
}
