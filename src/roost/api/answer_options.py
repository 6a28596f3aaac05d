"""What whoever composes the API decides about its answers."""

from typing import Literal

import msgspec

from roost.model.settings.placement_settings import NOBODY, Placement


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Options of answers, by the names of their settings."""

    allocation_candidates_generation_strategy: Literal["depth-first", "breadth-first"] = "depth-first"
    max_allocation_candidates: int = -1  # generated for one request at most; -1: no bound
    randomize_allocation_candidates: bool = False
    groups_max: int = 100  # of one request for candidates, the unsuffixed one included
    candidates_max_bytes: int = 256 * 2**20  # of the candidates in one answer
    incomplete_consumer_project_id: str = NOBODY  # of consumers written before their owners are told
    incomplete_consumer_user_id: str = NOBODY
    agent_names_max: int = 256  # custom classes that the token of an agent may create, and traits; for each host
    tree_depth_max: int = 32  # providers on the way from a root to a leaf, both included
    tree_providers_max: int = 10_000  # of one tree


DEFAULTS = Options()


def options_of(settings: Placement) -> Options:
    """Return the part of the settings that decides about answers."""
    return msgspec.convert(msgspec.to_builtins(settings), Options)
