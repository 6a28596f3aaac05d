"""Provider config files: inventories and traits that operators add to those of drivers."""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import yaml
from msgspec import Meta
from msgspec.structs import asdict

from roost.compute.providers.provider_forest import has_changed
from roost.compute.providers.provider_tree import ProviderTree
from roost.errors import BadSettings, first_line, quote_value, unreadable_settings
from roost.model.names import uuid_bytes, uuid_form
from roost.model.provider import Inventory

COMPUTE_NODE = "$COMPUTE_NODE"  # matches every root that is a compute node
COMPUTE_NODE_TRAIT, OWNER_TRAIT = "COMPUTE_NODE", "OWNER_NOVA"
_CUSTOM = re.compile(r"CUSTOM_[A-Z0-9_]{1,248}")
_VERSION = re.compile(r"1\.[0-9]{1,9}")
_Text = Annotated[str, Meta(min_length=1, max_length=200)]


class _Meta(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    schema_version: str


class _Identification(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    uuid: _Text | None = None
    name: _Text | None = None


class _Inventories(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    additional: tuple[dict[str, dict[str, Any]], ...] = ()


class _Traits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    additional: tuple[str, ...] = ()


class _Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    identification: _Identification
    inventories: _Inventories = _Inventories()
    traits: _Traits = _Traits()


class _File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    meta: _Meta
    providers: Annotated[tuple[_Entry, ...], Meta(min_length=1)]


class _Record(Inventory, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class ProviderConfig(msgspec.Struct, frozen=True, kw_only=True):
    """An operator's additions to one provider, or to every compute node."""

    provider: str  # uuid, name, or COMPUTE_NODE
    inventories: dict[str, Inventory] = {}  # by resource class
    traits: frozenset[str] = frozenset()
    path: str  # of the file


def read(folder: str) -> list[ProviderConfig]:
    """Return the additions of the files ``*.yaml`` in a folder, sorted by file name; empty if the folder is missing.

    Args:
        folder: its path; empty: none.

    Raises:
        BadSettings: the folder or a file cannot be read, or a file is not YAML, has invalid content, or names a
            provider a second time.
    """
    if not folder:
        return []
    try:
        inside = [*Path(folder).iterdir()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise unreadable_settings(folder, error) from None
    found: dict[str, ProviderConfig] = {}
    for file in sorted(each for each in inside if each.suffix == ".yaml" and not each.name.startswith(".")):
        for config in _configs(str(file)):
            known = found.setdefault(config.provider, config)
            if known is not config:
                raise BadSettings(
                    config.path, f"provider {quote_value(config.provider)} has an entry in {known.path} already"
                )
    return [*found.values()]


class ProviderConfigs:
    """Adds the operators' inventories and traits to the tree of a host.

    Args:
        configs: from ``read``.
        warn: called once per missing provider.
    """

    def __init__(self, configs: Sequence[ProviderConfig], *, warn: Callable[[str], None]) -> None:
        self._configs, self._warn = configs, warn
        self._warned: set[str] = set()

    def merge(self, tree: ProviderTree) -> None:
        """Add inventories and traits to a complete tree of the driver, all or nothing.

        An entry for a uuid or a name takes precedence over the entry for all compute nodes. An entry may repeat an
        inventory of the driver with equal values.

        Raises:
            ValueError: a provider already has a standard trait of its entry, or other values for an inventory of its
                entry; or two entries match one provider.
        """
        found = self._match(tree)
        for uuid, config in found.items():
            _check(tree, uuid, config)
        for uuid, config in found.items():
            added = {name: asdict(inventory) for name, inventory in config.inventories.items()}
            tree.update_inventory(uuid, tree.data(uuid).inventory | added)
            tree.add_traits(uuid, OWNER_TRAIT, *config.traits)

    def _match(self, tree: ProviderTree) -> dict[str, ProviderConfig]:
        """Return the matching entry of each provider, by uuid."""
        found: dict[str, ProviderConfig] = {}
        for config in self._configs:
            if config.provider == COMPUTE_NODE:
                continue
            if not tree.exists(config.provider):
                self._miss(config)
                continue
            known = found.setdefault(tree.data(config.provider).uuid, config)
            if known is not config:
                names = f"{quote_value(known.provider)} and {quote_value(config.provider)}"
                raise ValueError(f"{known.path} and {config.path} have entries of one provider, {names}")
        for config in self._configs:
            if config.provider == COMPUTE_NODE:
                nodes = [root.uuid for root in tree.roots if COMPUTE_NODE_TRAIT in root.traits]
                found |= {uuid: config for uuid in nodes if uuid not in found}
        return found

    def _miss(self, config: ProviderConfig) -> None:
        if config.provider not in self._warned:
            self._warned.add(config.provider)
            self._warn(f"{config.path}: there is no provider {quote_value(config.provider)}, so its entry is ignored")


def _check(tree: ProviderTree, uuid: str, config: ProviderConfig) -> None:
    data = tree.data(uuid)
    for name, inventory in config.inventories.items():
        if name in data.inventory and has_changed({name: data.inventory[name]}, {name: asdict(inventory)}):
            raise ValueError(f"{config.path}: provider {quote_value(data.name)} has inventory of {name} already")
    duplicates = sorted(name for name in config.traits & data.traits if not name.startswith("CUSTOM_"))
    if duplicates:
        raise ValueError(f"{config.path}: provider {quote_value(data.name)} has the trait {duplicates[0]} already")


def _configs(path: str) -> Iterator[ProviderConfig]:
    """Yield the entries of one file."""
    content = _load(path)
    try:
        file = msgspec.convert(content, _File)
    except msgspec.ValidationError as error:
        raise BadSettings(path, _describe_error(error)) from None
    if not _VERSION.fullmatch(file.meta.schema_version):
        raise BadSettings(path, f"meta.schema_version must be 1.x, got {quote_value(file.meta.schema_version)}")
    for number, entry in enumerate(file.providers):
        place = f"providers[{number}]"
        provider = _provider(path, place, entry.identification)
        inventories: dict[str, Inventory] = {}
        for group in entry.inventories.additional:
            for name, record in group.items():
                at = f"{place}.inventories.additional"
                _check_custom(path, at, name)
                if name in inventories:
                    raise BadSettings(path, f"{at}: {name} is there twice")
                try:
                    inventories[name] = Inventory(**asdict(msgspec.convert(record, _Record)))
                except msgspec.ValidationError as error:
                    raise BadSettings(path, f"{at}: {name}: {_describe_error(error)}") from None
        for name in entry.traits.additional:
            _check_custom(path, f"{place}.traits.additional", name)
        yield ProviderConfig(
            provider=provider, inventories=inventories, traits=frozenset(entry.traits.additional), path=path
        )


def _load(path: str) -> object:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise unreadable_settings(path, error) from None
    except UnicodeDecodeError:
        raise BadSettings(path, "cannot be read: it is not UTF-8") from None
    try:
        return yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise BadSettings(path, f"is not YAML: {line}{error.problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # Invalid dates raise a ValueError.
        raise BadSettings(path, f"is not YAML: {first_line(error)}") from None


def _provider(path: str, place: str, identification: _Identification) -> str:
    if (identification.uuid is None) == (identification.name is None):
        raise BadSettings(path, f"{place}.identification must have uuid or name, one of them")
    if identification.name is not None:
        return identification.name
    uuid = identification.uuid or ""
    if uuid != COMPUTE_NODE and uuid_bytes(uuid) is None:
        raise BadSettings(
            path, f"{place}.identification.uuid must be a uuid or {COMPUTE_NODE}, got {quote_value(uuid)}"
        )
    return uuid if uuid == COMPUTE_NODE else uuid_form(uuid)


def _check_custom(path: str, place: str, name: str) -> None:
    if not _CUSTOM.fullmatch(name):
        raise BadSettings(path, f"{place}: names must be CUSTOM_ and A-Z, 0-9 or _, got {quote_value(name)}")


def _describe_error(error: msgspec.ValidationError) -> str:
    problem, _, place = str(error).replace("`", "").partition(" - at $.")
    return f"{place}: {problem}" if place else problem
