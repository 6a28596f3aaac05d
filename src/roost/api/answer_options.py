"""Options of responses, from the settings."""

from typing import Literal

import msgspec

from roost.model.settings.placement_settings import NOBODY, Placement


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Options of responses, named like their settings."""

    allocation_candidates_generation_strategy: Literal["depth-first", "breadth-first"] = "depth-first"
    max_allocation_candidates: int = -1  # maximum number generated per request; -1: unlimited
    randomize_allocation_candidates: bool = False
    groups_max: int = 100  # per request for candidates, including the unsuffixed group
    candidates_max_bytes: int = 256 * 2**20  # maximum size of the candidates in one response
    incomplete_consumer_project_id: str = NOBODY  # owner of consumers written without one, before 1.8
    incomplete_consumer_user_id: str = NOBODY
    agent_names_max: int = 256  # per host: maximum of custom classes, and of custom traits, created by an agent's token
    tree_depth_max: int = 32  # providers on a path from root to leaf, inclusive
    tree_providers_max: int = 10_000  # providers per tree


DEFAULTS = Options()


def options_of(settings: Placement) -> Options:
    """Return the options in the settings."""
    return msgspec.convert(msgspec.to_builtins(settings), Options)
