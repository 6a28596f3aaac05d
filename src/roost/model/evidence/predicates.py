"""Predicates of refusals, such as "lack 4 VCPU or more", which agree with the number of hosts."""

import re
from collections.abc import Mapping

# Verbs at the beginning of a predicate or of a further clause.
_SINGULAR: Mapping[str, str] = {
    "accept": "accepts",
    "are": "is",
    "do": "does",
    "have": "has",
    "hold": "holds",
    "lack": "lacks",
    "offer": "offers",
    "share": "shares",
    "were": "was",
}
_PLURAL = {singular: plural for plural, singular in _SINGULAR.items()}
_CLAUSE = r"(?:\A|(?<=, )|(?<=, or )|(?<=, and ))"


def _pattern(verbs: Mapping[str, str]) -> re.Pattern[str]:
    return re.compile(rf"{_CLAUSE}({'|'.join(verbs)})\b")


_PLURAL_VERB, _SINGULAR_VERB = _pattern(_SINGULAR), _pattern(_PLURAL)


def count_hosts(count: int, predicate: str, noun: str = "") -> str:
    """Return a number of hosts with its predicate.

    Args:
        predicate: in the plural, as rules give it.
        noun: of the counted objects, in the singular; empty: none.

    >>> count_hosts(2, "are disabled or down"), count_hosts(1, "are ignored, or hold it", "host")
    ('2 are disabled or down', '1 host is ignored, or holds it')
    """
    if noun:
        noun = f" {noun}" if count == 1 else f" {noun}s"
    verb = singular_predicate(predicate) if count == 1 else predicate
    return f"{count:,}{noun} {verb}"


def singular_predicate(predicate: str) -> str:
    """Return a plural predicate for one host; a singular one stays unchanged."""
    return _PLURAL_VERB.sub(lambda match: _SINGULAR[match[1]], predicate)


def plural_predicate(predicate: str) -> str:
    """Return a predicate of one host in the plural; a plural one stays unchanged.

    >>> plural_predicate("lacks trait CUSTOM_A, or is down")
    'lack trait CUSTOM_A, or are down'
    """
    return _SINGULAR_VERB.sub(lambda match: _PLURAL[match[1]], predicate)
