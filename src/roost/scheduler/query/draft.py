"""A mutable query to Placement."""

from collections.abc import Iterable
from typing import Literal

from roost.errors import BadRequest
from roost.model.request import CandidateQuery, ResourceGroup

_EMPTY = ResourceGroup()


class DraftGroup:
    """A mutable request group."""

    __slots__ = ("avoided", "forbidden", "member_of", "required", "resources", "tree")

    def __init__(self, group: ResourceGroup = _EMPTY) -> None:
        self.resources = dict(group.resources)  # an amount of 0 removes a default
        # Insertion-ordered and unique: a request may require thousands of traits.
        self.required = dict.fromkeys(group.required)
        self.forbidden = set(group.forbidden)
        self.member_of = list(group.member_of)
        self.avoided = set(group.forbidden_aggregates)
        self.tree = group.in_tree

    def require(self, trait: str) -> None:
        """Require one trait."""
        self.required[frozenset({trait})] = None

    def add(self, group: ResourceGroup) -> None:
        """Merge another group without suffix; its amounts replace present ones."""
        self.resources.update(group.resources)
        self.required.update(dict.fromkeys(group.required))
        self.forbidden |= group.forbidden
        self.member_of.extend(group.member_of)
        self.avoided |= group.forbidden_aggregates
        self.require_tree(group.in_tree)

    def require_tree(self, uuid: str | None) -> None:
        """Require one tree, named by any of its providers.

        Raises:
            BadRequest: another tree is required already.
        """
        if uuid is not None and self.tree not in (None, uuid):
            raise BadRequest(f"the request requires two trees at once: {self.tree} and {uuid}")
        self.tree = self.tree if uuid is None else uuid

    def build(self, suffix: str) -> ResourceGroup:
        """Return the group as an immutable value.

        Raises:
            BadRequest: a trait is both required and forbidden.
        """
        if self.forbidden:
            check_conflicts((trait for traits in self.required if len(traits) == 1 for trait in traits), self.forbidden)
        return ResourceGroup(
            suffix=suffix,
            resources={name: amount for name, amount in self.resources.items() if amount},
            required=tuple(self.required),
            forbidden=frozenset(self.forbidden),
            member_of=tuple(self.member_of),
            forbidden_aggregates=frozenset(self.avoided),
            in_tree=self.tree,
        )


def check_conflicts(required: Iterable[str], forbidden: set[str]) -> None:
    """Refuse traits that are both required and forbidden.

    Raises:
        BadRequest: there is such a trait.
    """
    both = sorted(forbidden.intersection(required))
    if both:
        raise BadRequest(f"a trait is both required and forbidden: {', '.join(both)}")


class Draft:
    """Request groups by suffix, the unsuffixed one first, and the requirements on all of them together."""

    __slots__ = ("devices", "groups", "limit", "policy", "root_forbidden", "root_required", "same_subtree", "warnings")

    def __init__(self) -> None:
        self.groups = {"": DraftGroup()}
        self.devices: list[DraftGroup] = []  # groups for one PCI device each
        self.policy: Literal["none", "isolate"] = "none"
        self.root_required: set[str] = set()
        self.root_forbidden: set[str] = set()
        self.same_subtree: tuple[frozenset[str], ...] = ()
        self.limit: int | None = None
        self.warnings: list[str] = []  # one sentence each

    @property
    def main(self) -> DraftGroup:
        """The group without suffix."""
        return self.groups[""]

    def group(self, suffix: str) -> DraftGroup:
        """Return the group of a suffix; create it if necessary."""
        return self.groups.setdefault(suffix, DraftGroup())

    def add(self, group: ResourceGroup) -> DraftGroup:
        """Add a group with its own suffix.

        Raises:
            BadRequest: another group has this suffix.
        """
        if group.suffix in self.groups:
            raise BadRequest(f"two resource groups have the suffix {group.suffix!r}")
        draft = self.groups[group.suffix] = DraftGroup(group)
        return draft

    def add_device(self, group: ResourceGroup) -> None:
        """Add a group for one PCI device."""
        self.devices.append(self.add(group))

    @property
    def has_resources(self) -> bool:
        """Whether any group requests an amount."""
        return any(amount for group in self.groups.values() for amount in group.resources.values())

    def trait_requirements(self) -> frozenset[str]:
        """Return all traits that any group requires."""
        return frozenset(trait for group in self.groups.values() for traits in group.required for trait in traits)

    def query(self) -> CandidateQuery:
        """Return the query, without empty groups.

        Raises:
            BadRequest: the query is empty, or a trait is both required and forbidden.
        """
        check_conflicts(self.root_required, self.root_forbidden)
        groups = [group.build(suffix) for suffix, group in self.groups.items()]
        try:
            return CandidateQuery(
                groups=tuple(group for group in groups if group != ResourceGroup(suffix=group.suffix)),
                group_policy=self.policy,
                root_required=frozenset(self.root_required),
                root_forbidden=frozenset(self.root_forbidden),
                same_subtree=self.same_subtree,
                limit=self.limit,
            )
        except ValueError as error:
            raise BadRequest(f"the request is not a valid query to Placement: {error}") from None
