"""A filter that compares each host with one number of the settings."""

from typing import ClassVar, Self

import msgspec

from roost.engine.columns.types import Scores
from roost.scheduler.framework.base_rule import BaseFilter


class NumberFilter(BaseFilter[msgspec.Struct]):
    """A filter by one number, such as a limit or a ratio.

    The aggregate filters read metadata with the option's name as key.
    """

    number_option: ClassVar[str]

    def __init__(self, options: msgspec.Struct) -> None:
        super().__init__(options)
        self.default: float = getattr(options, self.number_option)
        self.number: float | Scores = self.default  # one for all hosts, or one per host: float64, shape (hosts,)

    @classmethod
    def of_hosts(cls, numbers: Scores) -> Self:
        """Create the filter with one number per host: float64, shape (hosts,)."""
        rule = cls(cls.options())
        rule.number = numbers
        return rule
