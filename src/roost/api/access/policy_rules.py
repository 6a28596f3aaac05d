"""The small language in which policies are written: who may, by role, project and other rules.

.. code-block:: text

    rule   = all { "or" all }
    all    = part { "and" part }
    part   = "not" part | "(" rule ")" | check
    check  = "@" everybody | "!" nobody | kind ":" match

An empty rule is ``@``. In a match, ``%(name)s`` stands for what is acted on.
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
    """A rule cannot be understood; the text of the error says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule that is understood."""

    judge: Callable[[Identity, Target, Mapping[str, Judge]], bool]  # the last: other rules, by name
    refers: frozenset[str]  # names of these


_Check = Callable[[Identity, Target, Mapping[str, Judge]], bool]


def parse(text: str) -> Rule:
    """Understand a rule.

    Raises:
        BadRule: it cannot be understood.
    """
    parser = _Parser(text)
    return Rule(judge=parser.parse_rule(), refers=frozenset(parser.refers))


class _Parser:
    """One reading of one rule, from left to right."""

    def __init__(self, text: str) -> None:
        self.refers: set[str] = set()
        self._words = [*_tokenize(text), ""]
        self._at = 0
        self._depth = 0

    def parse_rule(self) -> _Check:
        if self._words == [""]:
            return _allow_all
        found = self._parse_or()
        if self._next:
            raise BadRule(f"{self._next!r} stands where 'and', 'or' or the end is due")
        return found

    @property
    def _next(self) -> str:
        return self._words[self._at]

    def _accept(self, word: str) -> bool:
        is_next = self._next.lower() == word
        self._at += is_next
        return is_next

    def _parse_or(self) -> _Check:
        parts = [self._parse_and()]
        while self._accept("or"):
            parts.append(self._parse_and())
        return parts[0] if len(parts) == 1 else lambda who, target, others: any(p(who, target, others) for p in parts)

    def _parse_and(self) -> _Check:
        parts = [self._parse_part()]
        while self._accept("and"):
            parts.append(self._parse_part())
        return parts[0] if len(parts) == 1 else lambda who, target, others: all(p(who, target, others) for p in parts)

    def _parse_part(self) -> _Check:
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            raise BadRule(f"brackets and 'not' are nested deeper than {_DEPTH_MAX}")
        try:
            if self._accept("not"):
                part = self._parse_part()
                return lambda who, target, others: not part(who, target, others)
            if self._accept("("):
                found = self._parse_or()
                if not self._accept(")"):
                    raise BadRule("a bracket is not closed")
                return found
            return self._parse_check()
        finally:
            self._depth -= 1

    def _parse_check(self) -> _Check:
        word = self._next
        if not word:
            raise BadRule("it ends where a check is due")
        if word.lower() in {")", "and", "or"}:
            raise BadRule(f"{word!r} stands where a check is due")
        self._at += 1
        if word == "@":
            return _allow_all
        if word == "!":
            return _deny_all
        kind, colon, match = word.partition(":")
        if not colon:
            raise BadRule(f"{word!r} is no check: one is @, ! or has the form KIND:MATCH")
        return self._make_check(kind, match)

    def _make_check(self, kind: str, match: str) -> _Check:
        if kind == "rule":
            self.refers.add(match)
            return lambda who, target, others: others[match](who, target)
        if kind == "role":
            return lambda who, target, _others: _substitute(match, target).lower() in who.roles
        if kind in {"http", "https"}:
            raise BadRule(f"{kind}:{match} asks another server, which is not done here")
        if _LITERAL.fullmatch(kind):
            literal = kind.strip("'\"")
            return lambda _who, target, _others: _substitute(match, target) == literal
        if kind not in _ATTRIBUTES:
            raise BadRule(f"{kind!r} is no kind of check: these are role, rule, {', '.join(_ATTRIBUTES)} and literals")
        read = _ATTRIBUTES[kind]
        return lambda who, target, _others: _substitute(match, target) in read(who)


def _tokenize(text: str) -> Iterator[str]:
    at = 0
    while text[at:].strip():
        found = _WORD.match(text, at)
        if found is None:
            raise BadRule(f"{text[at:].strip()[:20]!r} cannot be understood")
        yield found["bracket"] or found["check"]
        at = found.end()


def _substitute(match: str, target: Target) -> str:
    """Put what is acted on into a match; what is not known of it matches nothing that anybody has."""
    return _SUBSTITUTE.sub(lambda found: target.get(found[1], "\0"), match)


def _allow_all(_who: Identity, _target: Target, _others: Mapping[str, Judge]) -> bool:
    return True


def _deny_all(_who: Identity, _target: Target, _others: Mapping[str, Judge]) -> bool:
    return False


# What can be asked of somebody, with the values that match.
_ATTRIBUTES: Mapping[str, Callable[[Identity], tuple[str, ...]]] = {
    "user_id": lambda who: (who.user_id,),
    "project_id": lambda who: (who.project_id,),
    "is_admin": lambda who: ("True", "true", "1") if "admin" in who.roles else ("False", "false", "0"),
    "system_scope": lambda who: ("all",) if who.is_system_scoped else (),
}
