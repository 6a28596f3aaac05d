"""What whoever composes the API decides about its answers."""

from typing import Literal

import msgspec


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Options of answers, by the names of their settings."""

    allocation_candidates_generation_strategy: Literal["depth-first", "breadth-first"] = "depth-first"
    max_allocation_candidates: int = -1  # generated for one request at most; -1: no bound
    randomize_allocation_candidates: bool = False
    groups_max: int = 100  # of one request for candidates, the unsuffixed one included
    candidates_max_bytes: int = 256 * 2**20  # of the candidates in one answer


DEFAULTS = Options()
