"""Termination by Ctrl-C, a closed terminal, or SIGTERM.

The handler raises ``KeyboardInterrupt`` at any point of the program. Python drops this exception where exceptions
cannot propagate, such as in garbage-collector callbacks. Therefore the handler also records the signal, and long loops
call ``check``.
"""

import signal
import types

# Shells expect this number plus the signal number as the exit code.
EXIT_CODE_BASE = 128
_received: list[int] = []


def watch() -> None:
    """Raise ``KeyboardInterrupt`` at SIGINT, SIGTERM and SIGHUP, to close files and remove temporary files."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _on_signal)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # ``nohup`` ignores SIGHUP; keep that.
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
