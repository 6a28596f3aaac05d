"""Operations that move many instances, each by a separate operation.

``apply_plan``: the moves of a plan, in their order.
``drain``: all instances of a host.
"""
