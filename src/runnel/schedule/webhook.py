"""Alerts posted to an http address by a thread of its own: a refresh never waits for it."""

from __future__ import annotations

import http.client
import json
import logging
import queue
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from runnel.errors import UserError

_LOG = logging.getLogger("runnel.alerts")
_TIMEOUT = 5.0
CLOSE_SECONDS = 2.0
_PAUSES = (1.0, 5.0, 20.0)
_WAITING = 1000
_WORTH_REPEATING = frozenset({408, 425, 429})
Document = dict[str, Any]


class Webhook:
    """Posts documents in order; `failed` hears of each that could not be, `worked` of a success."""

    def __init__(
        self,
        url: str,
        failed: Callable[[str], None],
        worked: Callable[[], None],
        *,
        timeout: float = _TIMEOUT,
        pauses: tuple[float, ...] = _PAUSES,
    ) -> None:
        self._url = _checked(url)
        self._failed = failed
        self._worked = worked
        self._timeout = timeout
        self._pauses = pauses
        self._waiting: queue.Queue[Document | None] = queue.Queue(_WAITING)
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    @property
    def host(self) -> str:
        """All of the address that may be shown: the rest can be a password."""
        return urlsplit(self._url).hostname or ""

    def send(self, document: Document) -> None:
        """Leave a document to the thread; when too many wait already, it is lost and told so."""
        self._start()
        try:
            self._waiting.put_nowait(document)
        except queue.Full:
            self._failed(f"{_WAITING} alerts are waiting already")

    def close(self, wait: float = CLOSE_SECONDS) -> None:
        """Post what is left, each once and without pauses, for at most `wait` seconds."""
        self._closing.set()
        if self._thread is None:
            return
        deadline = time.monotonic() + wait
        with suppress(queue.Full):
            self._waiting.put(None, timeout=wait)
        self._thread.join(max(0.0, deadline - time.monotonic()))
        if self._thread.is_alive():
            _LOG.warning("%d alerts were not posted to %s", self._waiting.qsize(), self.host)

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="alerts", daemon=True)
                self._thread.start()

    def _work(self) -> None:
        while (document := self._waiting.get()) is not None:
            try:
                self._deliver(document)
            except Exception:
                _LOG.exception("an alert could not be posted to %s", self.host)

    def _deliver(self, document: Document) -> None:
        body = json.dumps(document, ensure_ascii=False).encode()
        for pause in (*self._pauses, None):
            problem, is_passing = self._post(body)
            if problem is None:
                self._worked()
                return
            if pause is None or not is_passing or self._closing.wait(pause):
                self._failed(problem)
                return

    def _post(self, body: bytes) -> tuple[str | None, bool]:
        """What went wrong, if anything, and whether trying again may help."""
        headers = {"Content-Type": "application/json", "User-Agent": "runnel"}
        request = urllib.request.Request(self._url, body, headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=self._timeout):
                return None, False
        except urllib.error.HTTPError as error:
            with error:
                return f"{self.host} answered {error.code}", _is_passing(error.code)
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            return f"{self.host} cannot be reached: {reason}", True


def _is_passing(code: int) -> bool:
    return code >= 500 or code in _WORTH_REPEATING


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_good = False
    if not is_good:
        raise UserError(
            "alert_webhook is not an address that alerts can be posted to",
            detail="expected http://... or https://...",
        )
    return url
