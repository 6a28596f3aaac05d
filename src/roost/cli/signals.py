"""Termination by Ctrl-C, a closed terminal, or SIGTERM.

Python raises ``KeyboardInterrupt`` wherever the program is, and drops it where exceptions cannot propagate, such as
garbage-collector callbacks. The signal is therefore recorded too, and long loops call ``check``.
"""

import signal
import types

# Added to the signal number: the exit code that shells expect after a signal.
EXIT_CODE_BASE = 128
_received: list[int] = []


def watch() -> None:
    """Raise ``KeyboardInterrupt`` at each of these signals, so that files are closed and temporary ones removed."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _on_signal)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup ignores it: the terminal may close.
        signal.signal(signal.SIGHUP, _on_signal)


def check() -> None:
    """Raise ``KeyboardInterrupt`` if a signal has arrived."""
    if _received:
        raise KeyboardInterrupt


def exit_code() -> int:
    """Return the exit code for the last signal."""
    return EXIT_CODE_BASE + (_received[-1] if _received else signal.SIGINT)


def _on_signal(number: int, _frame: types.FrameType | None) -> None:
    # Only the first signal interrupts, so that a second one does not interrupt the cleanup.
    if not _received:
        _received.append(number)
        raise KeyboardInterrupt
