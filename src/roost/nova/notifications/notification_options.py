"""Options of nova.conf for notifications: formats, drivers, topics and brokers."""

from collections.abc import Sequence

import msgspec

from roost.compat.ini import Ini, split_list
from roost.errors import BadSettings, quote_value
from roost.nova.rpc.broker_options import SCHEMES, BrokerOptions, read_broker_options

_OSLO, _NOVA, _DEFAULT = "oslo_messaging_notifications", "notifications", "DEFAULT"
# Drivers that send messages, and whether they do so in an envelope.
_SENDING = {"messaging": False, "messagingv2": True}
_SILENT = frozenset({"", "noop", "test"})
_FORMATS = ("unversioned", "versioned", "both")


class NotificationOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where notifications go, and in which form.

    Args:
        broker: brokers and flags of queues.
        envelopes: for each driver, whether its messages have an envelope; empty: nothing is sent.
        topics: topics of unversioned notifications; empty: none are sent.
        versioned_topics: the same for versioned ones.
    """

    broker: BrokerOptions
    envelopes: tuple[bool, ...] = ()
    topics: tuple[str, ...] = ()
    versioned_topics: tuple[str, ...] = ()


def read_notification_options(ini: Ini) -> NotificationOptions | None:
    """Read the options of a file; None: nothing is to be sent to a RabbitMQ.

    Names of options in ``[DEFAULT]`` are those of older files.

    Raises:
        BadSettings: an option is invalid.
    """
    style = (_last(ini, (_NOVA, "notification_format"), (_DEFAULT, "notification_format")) or _FORMATS[0]).strip()
    if style not in _FORMATS:
        problem = f"must be one of {', '.join(_FORMATS)}, got {quote_value(style)}"
        raise BadSettings(f"{ini.path}: {_NOVA}.notification_format", problem)
    # In Nova, the order of drivers is that of their names.
    envelopes = tuple(_SENDING[driver] for driver in sorted(_drivers(ini)) if driver in _SENDING)
    if not envelopes or not _is_rabbit(ini):
        return None
    topics = _topics(ini, (_OSLO, "topics"), (_DEFAULT, "notification_topics"), default="notifications")
    versioned = _topics(ini, (_NOVA, "versioned_notifications_topics"), default="versioned_notifications")
    return NotificationOptions(
        broker=read_broker_options(ini, url_section=_OSLO if _last(ini, (_OSLO, "transport_url")) else _DEFAULT),
        envelopes=envelopes,
        topics=topics if style != "versioned" else (),
        versioned_topics=versioned if style != "unversioned" else (),
    )


def find_foreign(ini: Ini) -> list[str]:
    """Return the means of nova-scheduler unknown to Roost, such as ``driver log``.

    Raises:
        BadSettings: an option is invalid.
    """
    drivers = _drivers(ini)
    found = [f"driver {driver}" for driver in drivers if driver not in _SENDING and driver not in _SILENT]
    if not _is_rabbit(ini) and any(driver in _SENDING for driver in drivers):
        found.append("a broker other than RabbitMQ")
    return found


def _is_rabbit(ini: Ini) -> bool:
    """Return whether notifications go to RabbitMQ; by default they use the brokers of calls."""
    url = _last(ini, (_OSLO, "transport_url"))
    return not url or url.strip().partition("://")[0].lower() in SCHEMES


def _drivers(ini: Ini) -> list[str]:
    """Return the names of all drivers, each once."""
    for place in ((_OSLO, "driver"), (_DEFAULT, "notification_driver")):
        values = _values(ini, place)
        if values:
            return list(dict.fromkeys(value.strip() for value in values))
    return []


def _topics(ini: Ini, *places: tuple[str, str], default: str) -> tuple[str, ...]:
    text = _last(ini, *places)
    return tuple(split_list(default if text is None else text))


def _last(ini: Ini, *places: tuple[str, str]) -> str | None:
    """Return the last value of the first option that is set."""
    return next((values[-1] for place in places if (values := _values(ini, place))), None)


def _values(ini: Ini, place: tuple[str, str]) -> Sequence[str]:
    try:
        return ini.get_all(*place)
    except BadSettings as error:
        section, option = place
        raise BadSettings(f"{ini.path}: {section}.{option}", error.problem) from None
