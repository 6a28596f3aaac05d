"""The part of ``oslo_config.cfg`` that filters and weighers use: options and their values.

All values come from Roost's settings, so CONF is read-only.
"""

import importlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar


class Error(Exception):
    """Base of option errors."""


class NoSuchOptError(Error, AttributeError):
    """No option of this name is registered."""

    def __init__(self, opt_name: str, group: str | None = None) -> None:
        self.opt_name, self.group = opt_name, group
        super().__init__(f"no such option {opt_name} in group [{group or 'DEFAULT'}]")


class DuplicateOptError(Error):
    """Two different options have the same name."""

    def __init__(self, opt_name: str) -> None:
        self.opt_name = opt_name
        super().__init__(f"duplicate option: {opt_name}")


class Opt:
    """An option: its name, default and kind of value.

    Args:
        name: with dashes or underscores.
        more: unused arguments of oslo.config, such as ``deprecated_for_removal``.
    """

    kind: ClassVar[type] = str
    multi: ClassVar[bool] = False

    def __init__(
        self,
        name: str,
        type: object = None,  # noqa: A002  # Names of oslo.config.
        dest: str | None = None,
        default: Any = None,
        help: str | None = None,  # noqa: A002
        choices: Iterable[Any] | None = None,
        min: float | None = None,  # noqa: A002
        max: float | None = None,  # noqa: A002
        **more: object,
    ) -> None:
        self.name = name
        self.dest = dest or name.replace("-", "_")
        self.default = default
        self.help = help
        # A choice is a value, or a pair of a value and its description.
        self.choices = [each[0] if isinstance(each, tuple) else each for each in choices or ()]
        self.min, self.max = min, max
        self.more = more

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Opt) and self._all() == other._all()

    __hash__ = object.__hash__

    def _all(self) -> tuple[object, ...]:
        return self.__class__, self.name, self.dest, self.default, tuple(self.choices), self.min, self.max

    def check(self, value: Any) -> str:
        """Return the problem of a value of the right type; empty: it is valid."""
        if self.choices and value not in self.choices:
            return f"must be one of {', '.join(map(str, self.choices))}"
        if self.min is not None and value < self.min:
            return f"must be {self.min} or more"
        return f"must be {self.max} or less" if self.max is not None and value > self.max else ""


class StrOpt(Opt):
    """A string."""


class IntOpt(Opt):
    """A whole number."""

    kind = int


class PortOpt(IntOpt):
    """A TCP or UDP port."""


class FloatOpt(Opt):
    """A number."""

    kind = float


class BoolOpt(Opt):
    """True or false."""

    kind = bool


class ListOpt(Opt):
    """Strings separated by commas."""

    kind = list


class MultiStrOpt(ListOpt):
    """Strings, one per occurrence of the option."""

    multi = True


class MultiOpt(MultiStrOpt):
    """Values, one per occurrence of the option."""


class DictOpt(Opt):
    """Pairs ``key:value`` separated by commas."""

    kind = dict


class HostAddressOpt(StrOpt):
    """The name or address of a host."""


class HostnameOpt(StrOpt):
    """The name of a host."""


class IPOpt(StrOpt):
    """An IP address."""


class URIOpt(StrOpt):
    """A URI."""


class OptGroup:
    """A section of options."""

    def __init__(self, name: str, title: str | None = None, help: str | None = None, **more: object) -> None:  # noqa: A002
        self.name, self.title, self.help, self.more = name, title, help, more


class GroupAttr(Mapping[str, Any]):
    """The values of one section, by attribute and by key."""

    def __init__(self, conf: "ConfigOpts", group: str) -> None:
        self._conf = conf
        self._group = group

    def __getattr__(self, name: str) -> Any:
        return self._conf.value(self._group, name)

    def __getitem__(self, key: str) -> Any:
        try:
            return self._conf.value(self._group, key)
        except NoSuchOptError:
            raise KeyError(key) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._conf.names(self._group))

    def __len__(self) -> int:
        return len(self._conf.names(self._group))


class ConfigOpts(Mapping[str, Any]):
    """Options by section, and their values."""

    def __init__(self) -> None:
        self.options: dict[str, dict[str, Opt]] = {}  # registered, by section and name
        self.settings: Mapping[str, Mapping[str, Any]] = {}  # values, by section and name

    def __call__(self, *_args: object, **_more: object) -> None:
        """Read nothing: values come from Roost's settings."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in self.names("DEFAULT"):
            return self.value("DEFAULT", name)
        if name in self.settings or name in self.options:
            return GroupAttr(self, name)
        raise NoSuchOptError(name)

    def __getitem__(self, key: str) -> Any:
        return getattr(self, key)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and (key in self.names("DEFAULT") or key in self.settings or key in self.options)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self.names("DEFAULT"), *self.settings, *self.options]))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def names(self, group: str) -> list[str]:
        """Return the names of the options of a section."""
        return list(dict.fromkeys([*self.settings.get(group, ()), *self.options.get(group, ())]))

    def value(self, group: str, name: str) -> Any:
        """Return the value in the settings, else the default.

        Raises:
            NoSuchOptError: the option is unknown.
        """
        values = self.settings.get(group, {})
        if name in values:
            return values[name]
        opt = self.options.get(group, {}).get(name)
        if opt is None:
            raise NoSuchOptError(name, group)
        return opt.default

    def register_group(self, group: OptGroup) -> None:
        """Register a section."""
        self.options.setdefault(_name(group), {})

    def register_opt(self, opt: Opt, group: OptGroup | str | None = None, **_more: object) -> bool:
        """Register an option; return whether it is new.

        Raises:
            DuplicateOptError: a different option with this name is registered.
        """
        options = self.options.setdefault(_name(group), {})
        if opt.dest in options:
            if options[opt.dest] == opt:
                return False
            raise DuplicateOptError(opt.name)
        options[opt.dest] = opt
        return True

    def register_opts(self, opts: Iterable[Opt], group: OptGroup | str | None = None) -> None:
        """Register options."""
        for opt in opts:
            self.register_opt(opt, group)

    register_cli_opt = register_opt
    register_cli_opts = register_opts

    def import_opt(self, _name: str, module_str: str, _group: object = None) -> None:
        """Import the module that registers an option."""
        importlib.import_module(module_str)

    def import_group(self, _group: object, module_str: str) -> None:
        """Import the module that registers a section."""
        importlib.import_module(module_str)

    def set_default(self, name: str, default: Any, group: OptGroup | str | None = None) -> None:
        """Change the default of an option."""
        options = self.options.get(_name(group), {})
        if name not in options:
            raise NoSuchOptError(name, _name(group))
        options[name].default = default

    def set_override(self, name: str, _override: Any, group: OptGroup | str | None = None) -> None:
        """Raise an error, because CONF is read-only.

        Raises:
            Error: always.
        """
        raise Error(f"[{_name(group)}] {name} cannot be overridden: CONF shows Roost's settings and is read-only")


def _name(group: OptGroup | str | None) -> str:
    return group.name if isinstance(group, OptGroup) else group or "DEFAULT"


CONF = ConfigOpts()
