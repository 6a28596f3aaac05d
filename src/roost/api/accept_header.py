"""Content negotiation by the header ``accept``."""

import re
from collections.abc import Sequence

_WORD = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_VALUE = rf'(?:{_WORD}|"(?:[^"\\]|\\.)*")'
_QUALITY = re.compile(r"[ \t]*;[ \t]*[qQ]=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)(?=[ \t]*(?:[;,]|\Z))")
_PARAMETER = re.compile(rf"[ \t]*;[ \t]*(?![qQ]=){_WORD}={_VALUE}")
_EXTENSION = re.compile(rf"[ \t]*;[ \t]*{_WORD}(?:={_VALUE})?")
_RANGE = re.compile(rf"(\*/\*|{_WORD}/\*|{_WORD}/{_WORD})")
_GAP = re.compile(r"[ \t]*(?:,[ \t]*)*")


def acceptable_types(header: str | None, offers: Sequence[str]) -> list[str]:
    """Return the media types that a client accepts, by descending quality.

    Args:
        header: ``accept``; None, an empty or a malformed header accepts every type.
        offers: media types; their order breaks ties.

    Source:
        RFC 7231, 5.3.2; a range with parameters matches no offer.

    >>> acceptable_types("text/html;q=0.5, application/json", ["text/html", "application/json"])
    ['application/json', 'text/html']
    >>> acceptable_types("image/png", ["text/html"])
    []
    """
    ranges = _parse_ranges(header) if header else None
    if ranges is None:
        return list(offers)
    matches = []
    for offer in offers:
        kind = offer.partition("/")[0]
        # The most specific range decides.
        for media_range in (offer, f"{kind}/*", "*/*"):
            if media_range in ranges:
                matches.append((ranges[media_range], offer))
                break
    accepted = sorted(((quality, offer) for quality, offer in matches if quality > 0), key=lambda pair: -pair[0])
    return [offer for _, offer in accepted]


def _parse_ranges(header: str) -> dict[str, float] | None:
    """Return the quality of each range; the key of a range with parameters ends in ``;``. None: malformed header."""
    ranges: dict[str, float] = {}
    at = _match_end(_GAP, header, 0)
    while at < len(header):
        match = _RANGE.match(header, at)
        if match is None:
            return None
        name, at, quality = match[1].lower(), match.end(), 1.0
        after = at
        while parameter := _PARAMETER.match(header, after):
            after = parameter.end()
        has_parameters = after > at
        match = _QUALITY.match(header, after)
        if match is not None:
            quality, after = float(match[1]), match.end()
            while extension := _EXTENSION.match(header, after):
                after = extension.end()
        at = _match_end(_GAP, header, after)
        if at < len(header) and "," not in header[after:at]:
            return None
        ranges.setdefault(f"{name};" if has_parameters else name, quality)
    return ranges


def _match_end(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return at if match is None else match.end()
