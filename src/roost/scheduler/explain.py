"""Evidence in words."""

from collections.abc import Sequence

from roost.model.decision import Stage


def refusal_text(stages: Sequence[Stage], *, found: int = 0, wanted: int = 1) -> str:
    """Say in one line what the hosts lack, counted per reason, most common first.

    Args:
        stages: one a check, in order.
        found: instances that had their host before the one that found none.
        wanted: instances asked for.

    >>> refusal_text([Stage("search", 10, 4, "lack 2,048 MiB memory or more"), Stage("compute", 4, 0, "are down")])
    '0 of 10 hosts: 6 lack 2,048 MiB memory or more, 4 are down'
    """
    hosts = stages[0].before if stages else 0
    refusing = sorted(
        (stage for stage in stages if stage.before > stage.after), key=lambda stage: stage.after - stage.before
    )
    counted = ", ".join(f"{stage.before - stage.after:,} {stage.reason}" for stage in refusing)
    left = stages[-1].after if stages else 0
    text = f"{left:,} of {hosts:,} hosts" + (f": {counted}" if counted else "")
    return text if wanted == 1 else f"{text}; room for {found:,} of {wanted:,} instances"
