"""Questions to storage, which may never answer: each is waited for a while, and no longer.

A call into a mount that is gone comes back after minutes or never, and nothing can end it. So it
is made in a thread that may be lost, and nobody asks there again before that one has come back.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")

_LOOK = 0.02
# A local disk has answered everything before a second thread could begin.
_AT_ONCE = ((_LOOK, 1), (0.3, 8))
_MOST_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Question(Generic[R]):
    """What is asked, and the place that has to answer."""

    place: str
    ask: Callable[[], R]


@dataclass(slots=True)
class Asked:
    """A question on its way."""

    place: str
    ask: Callable[[], Any]
    begun_at: float | None = None
    is_over: bool = False
    answer: Any = None
    error: BaseException | None = None

    def begin(self) -> None:
        self.begun_at = monotonic()
        try:
            self.answer = self.ask()
        except BaseException as error:
            self.error = error
        self.is_over = True

    def waits_since(self, before: float) -> bool:
        """Whether it was asked before a moment, and is not answered."""
        return not self.is_over and self.begun_at is not None and self.begun_at < before


@dataclass(slots=True)
class Answers:
    """Asks side by side, and remembers which places owe an answer."""

    _owed: dict[str, Asked] = field(default_factory=dict)

    def ask(
        self, questions: Mapping[K, Question[R]], patience: float, is_stopped: Callable[[], bool]
    ) -> dict[K, R]:
        """The answers; those that did not come in so many seconds are left out."""
        asked = {
            key: Asked(question.place, question.ask)
            for key, question in questions.items()
            if not self._is_owed(question.place)
        }
        _Round(list(asked.values())).wait(patience, is_stopped)
        late = {a.place: a for a in asked.values() if not a.is_over and a.begun_at is not None}
        self._owed.update(late)
        return {key: _answer(a) for key, a in asked.items() if a.is_over}

    def _is_owed(self, place: str) -> bool:
        earlier = self._owed.get(place)
        return earlier is not None and not earlier.is_over


@dataclass(slots=True)
class _Round:
    """Questions that are asked together, by as many threads as it takes."""

    asked: Sequence[Asked]
    _waiting: deque[Asked] = field(default_factory=deque)
    _all_over: threading.Event = field(default_factory=threading.Event)
    _threads: int = 0

    def wait(self, patience: float, is_stopped: Callable[[], bool]) -> None:
        """Until all are answered, or those that are not have been waited for long enough."""
        self._waiting.extend(self.asked)
        begun_at = monotonic()
        while self.asked and not is_stopped():
            now = monotonic()
            lost = sum(a.waits_since(now - patience) for a in self.asked)
            if lost and lost == sum(not a.is_over for a in self.asked):
                break
            self._hire(_at_once(now - begun_at) + lost)
            if self._all_over.wait(_LOOK):
                break
        self._waiting.clear()

    def _hire(self, most: int) -> None:
        while self._waiting and self._threads < min(most, len(self.asked)):
            self._threads += 1
            # Daemons: one that never comes back must not keep the process from ending.
            threading.Thread(target=self._work, name="runnel looks", daemon=True).start()

    def _work(self) -> None:
        while True:
            try:
                asked = self._waiting.popleft()
            except IndexError:
                return
            asked.begin()
            if not self._waiting and all(a.is_over for a in self.asked):
                self._all_over.set()


def _at_once(passed: float) -> int:
    return next((n for until, n in _AT_ONCE if passed < until), _MOST_AT_ONCE)


def _answer(asked: Asked) -> Any:
    if asked.error is not None:
        raise asked.error
    return asked.answer
