"""Which form of an answer a client reads best: its header ``accept``, as WebOb understands it."""

import re
from collections.abc import Sequence

_WORD = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_RANGE = re.compile(rf"({_WORD})/({_WORD})((?:\s*;\s*{_WORD}=(?:{_WORD}|\"[^\"]*\"))*)")
_QUALITY = re.compile(r";\s*[qQ]=([0-9.]+)\s*\Z")
_NUMBER = re.compile(r"0(?:\.\d{0,3})?|1(?:\.0{0,3})?")


def best_of(offers: Sequence[str], accept: str) -> str | None:
    """Return what a client likes best of several media types, the first of equals; None: it takes none.

    A header that cannot be understood takes everything.

    >>> best_of(["text/html", "application/json"], "application/*;q=0.5, text/html;q=0.1")
    'application/json'
    """
    ranges = []
    for part in filter(None, map(str.strip, accept.split(","))):
        found = _RANGE.fullmatch(part)
        if found is None:
            return offers[0]
        quality = _QUALITY.search(found[3])
        if quality is not None and not _NUMBER.fullmatch(quality[1]):
            return offers[0]
        parameters = found[3] if quality is None else found[3][: quality.start()]
        ranges.append((found[1].lower(), found[2].lower(), parameters, 1.0 if quality is None else float(quality[1])))
    liked = [(_liking(offer, ranges), offer) for offer in offers]
    best = max(liking for liking, _ in liked)
    return next(offer for liking, offer in liked if liking == best) if best > 0 else None


def _liking(offer: str, ranges: Sequence[tuple[str, str, str, float]]) -> float:
    """Return the quality that the most exact of the ranges gives an offer; 0: it is not taken."""
    kind, _, form = offer.partition("/")
    found = (0, 0.0)
    for wanted_kind, wanted_form, parameters, quality in ranges:
        if parameters or wanted_kind not in {kind, "*"} or wanted_form not in {form, "*"}:
            continue
        found = max(found, (1 + (wanted_kind != "*") + (wanted_form != "*"), quality))
    return found[1]
