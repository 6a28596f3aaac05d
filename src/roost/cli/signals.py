"""The end that somebody asks for: Ctrl-C, a closed terminal, or the polite signal of a service manager.

Python raises ``KeyboardInterrupt`` wherever the program is, and drops it where an exception cannot go on, as in
a callback of the garbage collector. So it is remembered too, and long loops ask.
"""

import signal
import types

# What a shell expects of a program that a signal ended.
EXIT_CODE_BASE = 128
_received: list[int] = []


def watch() -> None:
    """End by ``KeyboardInterrupt`` at each of these signals, so that what is open is closed and temporary files go."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _on_signal)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # Under nohup the terminal may close.
        signal.signal(signal.SIGHUP, _on_signal)


def check() -> None:
    """Raise ``KeyboardInterrupt`` if the end was asked for."""
    if _received:
        raise KeyboardInterrupt


def exit_code() -> int:
    """Return what the program ends with."""
    return EXIT_CODE_BASE + (_received[-1] if _received else signal.SIGINT)


def _on_signal(number: int, _frame: types.FrameType | None) -> None:
    # Whoever asks again while files are put away does not mean that they be left lying about.
    if not _received:
        _received.append(number)
        raise KeyboardInterrupt
