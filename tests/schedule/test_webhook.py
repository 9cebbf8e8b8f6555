"""The webhook posts every alert in order, tries again, gives up, and holds nobody up."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from runnel.catalog import open_catalog
from runnel.errors import UserError
from runnel.model.alerts import AlertKind
from runnel.model.settings import Settings
from runnel.schedule.alerting import AlertBook
from runnel.schedule.webhook import Webhook


class Server:
    """Answers each post with the next of `codes`, then with 200; `gate` can hold answers back."""

    def __init__(self) -> None:
        self.codes: list[int] = []
        self.posts: list[dict[str, Any]] = []
        self.gate = threading.Event()
        self.gate.set()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                server.gate.wait(10)
                server.posts.append(json.loads(body))
                self.send_response(server.codes.pop(0) if server.codes else 200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.http = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/secret-token"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "*")
    server = Server()
    thread = threading.Thread(target=server.http.serve_forever, daemon=True)
    thread.start()
    yield server
    server.gate.set()
    server.http.shutdown()
    server.http.server_close()


class Outcomes:
    def __init__(self) -> None:
        self.failed: list[str] = []
        self.worked = 0

    def count(self) -> None:
        self.worked += 1

    def hook(self, url: str, **options: Any) -> Webhook:
        return Webhook(url, self.failed.append, self.count, **{"pauses": (0.0, 0.0), **options})


def test_documents_are_posted_in_order(server: Server):
    outcomes = Outcomes()
    hook = outcomes.hook(server.url)
    for number in range(5):
        hook.send({"n": number})
    hook.close()
    assert server.posts == [{"n": n} for n in range(5)]
    assert (outcomes.worked, outcomes.failed) == (5, [])


@pytest.mark.parametrize("code", [500, 503, 429])
def test_a_passing_failure_is_tried_again(server: Server, code: int):
    server.codes = [code, code]
    outcomes = Outcomes()
    hook = outcomes.hook(server.url)
    hook.send({"n": 1})
    _until(lambda: outcomes.worked)
    hook.close()
    assert server.posts == [{"n": 1}] * 3
    assert outcomes.failed == []


def test_it_gives_up_and_goes_on(server: Server):
    server.codes = [500, 500, 500]
    outcomes = Outcomes()
    hook = outcomes.hook(server.url)
    hook.send({"n": 1})
    hook.send({"n": 2})
    _until(lambda: outcomes.worked)
    hook.close()
    assert outcomes.failed == ["127.0.0.1 answered 500"]
    assert server.posts[-1] == {"n": 2}


def test_a_refusal_is_not_repeated(server: Server):
    server.codes = [404]
    outcomes = Outcomes()
    hook = outcomes.hook(server.url)
    hook.send({"n": 1})
    hook.close()
    assert (server.posts, outcomes.failed) == ([{"n": 1}], ["127.0.0.1 answered 404"])


def test_nobody_there_is_told_without_the_whole_address():
    outcomes = Outcomes()
    hook = outcomes.hook("http://127.0.0.1:1/secret-token")
    hook.send({"n": 1})
    hook.close()
    assert len(outcomes.failed) == 1
    assert "127.0.0.1 cannot be reached" in outcomes.failed[0]
    assert "secret" not in outcomes.failed[0]


def test_sending_and_closing_do_not_wait_for_a_slow_server(
    server: Server, caplog: pytest.LogCaptureFixture
):
    server.gate.clear()
    outcomes = Outcomes()
    hook = outcomes.hook(server.url, timeout=30.0)
    for number in range(3):
        hook.send({"n": number})
    hook.close(wait=0.05)
    assert server.posts == []
    assert "were not posted to 127.0.0.1" in caplog.text


def test_more_than_can_wait_is_lost_and_told(server: Server, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("runnel.schedule.webhook._WAITING", 2)
    server.gate.clear()
    outcomes = Outcomes()
    hook = outcomes.hook(server.url)
    for number in range(5):
        hook.send({"n": number})
    assert outcomes.failed
    server.gate.set()
    hook.close()
    assert len(server.posts) + len(outcomes.failed) == 5


@pytest.mark.parametrize("url", ["file:///etc/passwd", "example.com/x", "http:///p", "ftp://h/x"])
def test_only_http_is_posted_to(url: str):
    with pytest.raises(UserError, match="alert_webhook") as caught:
        Outcomes().hook(url)
    assert url not in str(caught.value)


def test_alerts_go_out_and_failures_are_noted_once(
    server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    server.codes = [404, 404]
    with open_catalog(f"sqlite:///{tmp_path}/c.db") as catalog:
        book = AlertBook(catalog, Settings(alert_webhook=server.url), "a lake")
        with caplog.at_level(logging.WARNING, "runnel.alerts"):
            for name in ("one", "two", "three"):
                book.emit(AlertKind.REFRESH_FAILED, name, "division by zero", code="X")
            book.emit(AlertKind.REFRESH_COMPLETED, "four", "done")
            book.close()
        noted = [a.kind for a in catalog.alerts() if a.kind is not AlertKind.REFRESH_FAILED]
    assert [post["table"] for post in server.posts] == ["one", "two", "three"]
    last = server.posts[-1]
    assert (last["kind"], last["lake"], last["facts"]) == (
        "refresh_failed",
        "a lake",
        {"code": "X"},
    )
    assert last["text"] == "refresh_failed: three: division by zero"
    assert noted == [AlertKind.WEBHOOK_RECOVERED, AlertKind.WEBHOOK_FAILED]
    assert caplog.text.count("could not be posted") == 2


def _until(condition: Any) -> None:
    for _ in range(500):
        if condition():
            return
        threading.Event().wait(0.01)
    pytest.fail("it did not happen in time")
