"""Failures, rebuilt as exceptions by their callers.

A caller imports only modules of a list of its own, in Nova ``nova.exception``, and Python's builtin exceptions. A class
of any other module becomes a ``RemoteError`` with the name of the class.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

_DISPATCHER = "oslo_messaging.rpc.dispatcher"


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """An exception of the caller: ``class(*args, **kwargs)``.

    Args:
        class_name, module: name and module of its class.
        message: its text.
        args, kwargs: arguments of its class, with values for JSON.
    """

    class_name: str
    module: str
    message: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = {}

    def as_text(self) -> str:
        """Return the failure as JSON text, the form of the field ``failure`` of a reply."""
        fields = {
            "class": self.class_name,
            "module": self.module,
            "message": self.message,
            # One line instead of a traceback, which would show paths and names of this machine.
            "tb": [f"{self.class_name}: {self.message}\n"],
            "args": self.args,
            "kwargs": self.kwargs,
        }
        return msgspec.json.encode(fields).decode()


def build_failure(class_name: str, module: str, message: str, **kwargs: Any) -> Failure:
    """Return a failure of a class with its message as the only positional argument."""
    return Failure(class_name=class_name, module=module, message=message, args=(message,), kwargs=kwargs)


def reject_version(version: str, method: str) -> Failure:
    """Return the failure of a call of an unsupported version."""
    message = f"Endpoint does not support RPC version {version}. Attempted method: {method}"
    return build_failure("UnsupportedVersion", _DISPATCHER, message)


def reject_method(method: str) -> Failure:
    """Return the failure of a call of an unknown method."""
    return build_failure("NoSuchMethod", _DISPATCHER, f"Endpoint does not support RPC method {method}")


def internal_error(message: str = "internal error of the server; its log has the cause") -> Failure:
    """Return the failure of a call after an unexpected error."""
    return build_failure("RuntimeError", "builtins", message)
