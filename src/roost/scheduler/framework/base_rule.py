"""Base classes of filters and weighers: the attributes that a rule declares, with their defaults."""

from typing import Any, ClassVar, Generic, TypeVar

import msgspec

from roost.scheduler.framework.plugin import NoOptions, Reads
from roost.scheduler.framework.spec import Spec

Options = TypeVar("Options", bound=msgspec.Struct)


class BaseRule(Generic[Options]):
    """Common base of filters and weighers. A rule has the name of its module unless it sets ``name``."""

    name: ClassVar[str]
    nova_name: ClassVar[str] = ""
    section: ClassVar[str] = "filter_scheduler"
    options: ClassVar[type[msgspec.Struct]] = NoOptions

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if "name" not in vars(cls):
            cls.name = cls.__module__.rpartition(".")[2]

    def __init__(self, options: Options) -> None:
        self._options = options

    def concerns(self, spec: Spec) -> bool:
        """Return True: the rule applies to every request."""
        return True


class BaseFilter(BaseRule[Options]):
    """A filter without its verdicts: a subclass adds ``keep`` and ``reason``."""

    run_filter_once_per_request: ClassVar[bool] = False
    run_on_rebuild: ClassVar[bool] = False

    def reads(self, spec: Spec) -> Reads:
        """Return "use": every change of a host may change its verdict."""
        return "use"


class BaseWeigher(BaseRule[Options]):
    """A weigher without its raw weights: a subclass adds ``raw``."""

    multiplier_option: ClassVar[str]  # option of its multiplier
    aggregate_key: ClassVar[str]  # equal to the option's name unless set
    minval: ClassVar[float | None] = None
    maxval: ClassVar[float | None] = None
    sign: ClassVar[float] = 1.0

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if "aggregate_key" not in vars(cls) and "multiplier_option" in vars(cls):
            cls.aggregate_key = cls.multiplier_option

    @property
    def multiplier(self) -> float:
        """The multiplier of the settings, with its sign."""
        multiplier: float = getattr(self._options, self.multiplier_option)
        return self.sign * multiplier
