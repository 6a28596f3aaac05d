"""Orders as messages to agents."""

from collections.abc import Mapping

import msgspec

from roost.model.names import uuid_text
from roost.model.work.orders import (
    AbortMigration,
    Act,
    Destroy,
    Discard,
    Finish,
    Inspect,
    LiveMigrate,
    Order,
    OrderBody,
    Power,
    Prepare,
    Reboot,
    Rebuild,
    Save,
    SendDisk,
    Settle,
    Spawn,
)
from roost.model.work.work_rows import OrderRow

_WITH_GUEST: Mapping[str, type[Spawn | Rebuild | Prepare | Finish]] = {
    "spawn": Spawn,
    "rebuild": Rebuild,
    "prepare": Prepare,
    "finish": Finish,
}
_WITH_ADDRESS: Mapping[str, type[SendDisk | LiveMigrate]] = {"send_disk": SendDisk, "live_migrate": LiveMigrate}
_WITHOUT_DETAILS: Mapping[str, Act] = {
    "destroy": Destroy(),
    "inspect": Inspect(),
    "save": Save(),
    "reboot": Reboot(),
    "abort_migration": AbortMigration(),
    "power_on": Power(is_on=True),
    "power_off": Power(is_on=False),
}


def order_message(order: OrderRow) -> Order:
    """Return an order as a message."""
    body = msgspec.json.decode(order.body, type=OrderBody)
    return Order(
        id=order.id,
        host=order.host,
        operation=body.operation,
        number=order.number,
        turn=order.turn,
        instance=None if order.instance_uuid is None else uuid_text(order.instance_uuid),
        act=_act(order.action, body),
        limit_s=body.limit_s,
    )


def _act(action: str, body: OrderBody) -> Act:
    if action in _WITH_GUEST:
        assert body.guest is not None, f"an order to {action} names the guest"
        return _WITH_GUEST[action](body.guest)
    if action in _WITH_ADDRESS:
        assert body.to is not None, f"an order to {action} names the address"
        return _WITH_ADDRESS[action](body.to)
    if action == "discard":
        return Discard(body.of, is_sparing=body.is_sparing)
    if action == "settle":
        return Settle(body.of)
    return _WITHOUT_DETAILS[action]
