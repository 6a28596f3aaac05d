"""The scheduler hints that rules read, to find misspelled ones in requests."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field

from roost.errors import quote_value

# Hints that Roost reads itself: the type of Nova's check, the server group, and its fault domain.
_OWN = frozenset({"_nova_check_type", "fault_domain", "group"})


@dataclass(frozen=True, slots=True, kw_only=True)
class HintNames:
    """The names of hints, by the rules that read them."""

    enabled: frozenset[str] = field(default=frozenset())  # hints of enabled rules
    idle: Mapping[str, str] = field(default_factory=dict)  # hint of a built-in filter -> the filter, enabled or not
    is_complete: bool = True  # False: an enabled third-party rule does not declare its hints

    def problem(self, name: str) -> str:
        """Return the reason why a hint has no effect, as a sentence; empty: a rule reads it, or may read it.

        >>> HintNames(idle={"same_host": "same_host"}).problem("same_hots")
        "the hint 'same_hots' has no effect: no enabled filter reads it; did you mean same_host?"
        """
        if name in _OWN or name in self.enabled:
            return ""
        if name in self.idle:
            return f"the hint {name} has no effect: the filter {self.idle[name]} is not enabled"
        close = difflib.get_close_matches(name, sorted({*_OWN, *self.enabled, *self.idle}), n=1, cutoff=0.8)
        if not close and not self.is_complete:
            return ""
        advice = f"; did you mean {close[0]}?" if close else ""
        return f"the hint {quote_value(name)} has no effect: no enabled filter reads it{advice}"
