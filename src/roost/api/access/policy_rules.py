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
    return Rule(judge=parser.whole(), refers=frozenset(parser.refers))


class _Parser:
    """One reading of one rule, from left to right."""

    def __init__(self, text: str) -> None:
        self.refers: set[str] = set()
        self._words = [*_words(text), ""]
        self._at = 0
        self._depth = 0

    def whole(self) -> _Check:
        if self._words == [""]:
            return _everybody
        found = self._either()
        if self._next:
            raise BadRule(f"{self._next!r} stands where 'and', 'or' or the end is due")
        return found

    @property
    def _next(self) -> str:
        return self._words[self._at]

    def _takes(self, word: str) -> bool:
        is_next = self._next.lower() == word
        self._at += is_next
        return is_next

    def _either(self) -> _Check:
        parts = [self._all()]
        while self._takes("or"):
            parts.append(self._all())
        return parts[0] if len(parts) == 1 else lambda who, target, others: any(p(who, target, others) for p in parts)

    def _all(self) -> _Check:
        parts = [self._part()]
        while self._takes("and"):
            parts.append(self._part())
        return parts[0] if len(parts) == 1 else lambda who, target, others: all(p(who, target, others) for p in parts)

    def _part(self) -> _Check:
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            raise BadRule(f"brackets and 'not' are nested deeper than {_DEPTH_MAX}")
        try:
            if self._takes("not"):
                part = self._part()
                return lambda who, target, others: not part(who, target, others)
            if self._takes("("):
                found = self._either()
                if not self._takes(")"):
                    raise BadRule("a bracket is not closed")
                return found
            return self._check()
        finally:
            self._depth -= 1

    def _check(self) -> _Check:
        word = self._next
        if not word:
            raise BadRule("it ends where a check is due")
        if word.lower() in {")", "and", "or"}:
            raise BadRule(f"{word!r} stands where a check is due")
        self._at += 1
        if word == "@":
            return _everybody
        if word == "!":
            return _nobody
        kind, colon, match = word.partition(":")
        if not colon:
            raise BadRule(f"{word!r} is no check: one is @, ! or has the form KIND:MATCH")
        return self._of_kind(kind, match)

    def _of_kind(self, kind: str, match: str) -> _Check:
        if kind == "rule":
            self.refers.add(match)
            return lambda who, target, others: others[match](who, target)
        if kind == "role":
            return lambda who, target, _others: _filled(match, target).lower() in who.roles
        if kind in {"http", "https"}:
            raise BadRule(f"{kind}:{match} asks another server, which is not done here")
        if _LITERAL.fullmatch(kind):
            literal = kind.strip("'\"")
            return lambda _who, target, _others: _filled(match, target) == literal
        if kind not in _ATTRIBUTES:
            raise BadRule(f"{kind!r} is no kind of check: these are role, rule, {', '.join(_ATTRIBUTES)} and literals")
        read = _ATTRIBUTES[kind]
        return lambda who, target, _others: _filled(match, target) in read(who)


def _words(text: str) -> Iterator[str]:
    at = 0
    while text[at:].strip():
        found = _WORD.match(text, at)
        if found is None:
            raise BadRule(f"{text[at:].strip()[:20]!r} cannot be understood")
        yield found["bracket"] or found["check"]
        at = found.end()


def _filled(match: str, target: Target) -> str:
    """Put what is acted on into a match; what is not known of it matches nothing that anybody has."""
    return _SUBSTITUTE.sub(lambda found: target.get(found[1], "\0"), match)


def _everybody(_who: Identity, _target: Target, _others: Mapping[str, Judge]) -> bool:
    return True


def _nobody(_who: Identity, _target: Target, _others: Mapping[str, Judge]) -> bool:
    return False


# What can be asked of somebody, with the values that match.
_ATTRIBUTES: Mapping[str, Callable[[Identity], tuple[str, ...]]] = {
    "user_id": lambda who: (who.user_id,),
    "project_id": lambda who: (who.project_id,),
    "is_admin": lambda who: ("True", "true", "1") if "admin" in who.roles else ("False", "false", "0"),
    "system_scope": lambda who: ("all",) if who.is_system_scoped else (),
}
