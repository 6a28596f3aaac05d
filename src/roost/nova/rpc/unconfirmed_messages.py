"""Published messages without a confirmation of the broker yet."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from roost.nova.rpc.broker_link import BrokerGone

Sent = TypeVar("Sent")


class UnconfirmedMessages(Generic[Sent]):
    """The messages of one channel that the broker has not confirmed; for the thread of the channel.

    Args:
        name: of one message, for errors.
        max_count: upper bound of their number.
        confirm_s: limit of the time without a confirmation.
        clock: seconds, monotonic.
    """

    def __init__(self, name: str, *, max_count: int, confirm_s: float, clock: Callable[[], float]) -> None:
        self._name, self._max_count, self._confirm_s, self._clock = name, max_count, confirm_s, clock
        self._sent: dict[int, Sent] = {}  # by delivery tag, oldest first
        self._last_tag = 0
        self._progress_s = 0.0  # time of the last confirmation, or since when one is due

    def __len__(self) -> int:
        return len(self._sent)

    @property
    def is_full(self) -> bool:
        """Whether the broker must confirm a message before the next one."""
        return len(self._sent) >= self._max_count

    @property
    def messages(self) -> list[Sent]:
        """The messages, oldest first."""
        return list(self._sent.values())

    def begin(self, channel: Any, *, on_confirm: Callable[..., None], on_refuse: Callable[..., None]) -> None:
        """Use a new channel.

        Args:
            on_confirm, on_refuse: called with a tag, and whether all earlier messages are meant, too.
        """
        channel.confirm_select()
        channel.events["basic_ack"].add(on_confirm)
        channel.events["basic_nack"].add(on_refuse)
        self._last_tag, self._progress_s = 0, self._clock()

    def check(self, *, is_blocked: bool) -> None:
        """Check that the broker confirms messages, unless it blocks the connection.

        Raises:
            BrokerGone: it has confirmed nothing for too long.
        """
        now_s = self._clock()
        if is_blocked or not self._sent:
            self._progress_s = now_s
        if now_s - self._progress_s > self._confirm_s:
            raise BrokerGone(f"the broker has confirmed no {self._name} for {self._confirm_s:g} s")

    def add(self, message: Sent) -> None:
        """Add a message before its write: a write that fails may still have reached the broker."""
        self._last_tag += 1
        self._sent[self._last_tag] = message

    def take(self, tag: int, *, is_multiple: bool) -> list[Sent]:
        """Remove and return the messages of a confirmation or refusal.

        Args:
            is_multiple: whether all messages up to the tag are meant.
        """
        self._progress_s = self._clock()
        tags = [each for each in self._sent if each <= tag] if is_multiple else [tag]
        return [self._sent.pop(each) for each in tags if each in self._sent]

    def take_all(self) -> list[Sent]:
        """Remove and return all messages, oldest first: their channel was lost."""
        messages = self.messages
        self._sent.clear()
        return messages
