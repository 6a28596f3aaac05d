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
    """Base of filters: a subclass implements ``keep`` and ``reason``."""

    run_filter_once_per_request: ClassVar[bool] = False
    run_on_rebuild: ClassVar[bool] = False

    def reads(self, spec: Spec) -> Reads:
        """Return "use": every change of a host may change its verdict."""
        return "use"


class BaseWeigher(BaseRule[Options]):
    """Base of weighers: a subclass implements ``raw``."""

    multiplier_option: ClassVar[str]  # name of the option for its multiplier
    aggregate_key: ClassVar[str]  # defaults to ``multiplier_option``
    minval: ClassVar[float | None] = None
    maxval: ClassVar[float | None] = None
    sign: ClassVar[float] = 1.0

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if "aggregate_key" not in vars(cls) and "multiplier_option" in vars(cls):
            cls.aggregate_key = cls.multiplier_option

    @property
    def multiplier(self) -> float:
        """The multiplier from the settings, times the weigher's sign."""
        multiplier: float = getattr(self._options, self.multiplier_option)
        return self.sign * multiplier
