"""Schedules as users write them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from runnel.errors import UserError
from runnel.model.schedule import Cron, Schedule
from runnel.model.settings import Settings


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30), ("5m", 300), ("1h30m", 5400), ("1 hour 30 minutes 5 seconds", 5405), ("1d", 86400)],
)  # fmt: skip
def test_durations(text: str, seconds: float) -> None:
    found = Schedule.parse(text)
    assert (found.seconds, found.cron, found.is_downstream) == (seconds, None, False)


@pytest.mark.parametrize(
    ("text", "cron"),
    [
        ("cron 0 6 * * * Europe/Berlin", Cron("0 6 * * *", "Europe/Berlin")),
        ("0 6 * * *", Cron("0 6 * * *", "UTC")),
        ("USING CRON */5 9-17 * * MON-FRI America/New_York",
         Cron("*/5 9-17 * * MON-FRI", "America/New_York")),
        ("@daily Asia/Kolkata", Cron("0 0 * * *", "Asia/Kolkata")),
        ("  cron   15  3 1 *  *  ", Cron("15 3 1 * *", "UTC")),
    ],
)  # fmt: skip
def test_cron_lines(text: str, cron: Cron) -> None:
    assert Schedule.parse(text).cron == cron


@pytest.mark.parametrize("text", ["DOWNSTREAM", "downstream", " Downstream "])
def test_downstream(text: str) -> None:
    found = Schedule.parse(text)
    assert (found.text, found.is_downstream) == ("DOWNSTREAM", True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not a schedule"),
        ("5x", "such as '30s', '5m'"),
        ("-5m", "is not a schedule"),
        ("0s", "is not a schedule"),
        ("cron 61 * * * *", "bad minute"),
        ("cron 0 6 * *", "expected minute hour day-of-month month day-of-week"),
        ("0 6 * * * Mars/Olympus", "'Mars/Olympus' is not a time zone"),
        ("0 0 30 2 *", "bad day-of-month"),
        ("@often", "expected one of @hourly, @daily"),
        ("UPSTREAM", "or 'DOWNSTREAM'"),
        ("500ms", "the shortest is 1.0 s"),
    ],
)
def test_bad_schedules_say_what_is_expected(text: str, said: str) -> None:
    with pytest.raises(UserError) as caught:
        Schedule.parse(text, minimum=1.0)
    assert said in str(caught.value)


def test_cron_through_the_hour_that_does_not_exist_and_the_one_that_comes_twice() -> None:
    cron = Cron("30 2 * * *", "Europe/Berlin")
    spring = cron.after(datetime(2026, 3, 28, 12, tzinfo=UTC))
    assert spring == datetime(2026, 3, 29, 1, 0, tzinfo=UTC), "at the first moment that exists"
    autumn = cron.after(datetime(2026, 10, 24, 12, tzinfo=UTC))
    assert autumn == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert cron.after(autumn) == datetime(2026, 10, 26, 1, 30, tzinfo=UTC), "once, not twice"


def test_the_last_instant_may_be_now() -> None:
    cron = Cron("0 6 * * *")
    six = datetime(2026, 5, 5, 6, tzinfo=UTC)
    assert cron.until(six) == six
    assert cron.until(six.replace(microsecond=1)) == six
    assert cron.after(six) == six.replace(day=6)
    assert cron.until(datetime(2026, 5, 5, 5, 59, 59, 999_999, tzinfo=UTC)) == six.replace(day=4)


def test_settings_take_truths_and_durations_as_text(tmp_path: Path) -> None:
    given = {"enabled": "No", "min_schedule": "1m", "scheduler_interval": "500ms"}
    found = Settings.load(tmp_path, given, {"": ""})
    assert (found.enabled, found.min_schedule, found.scheduler_interval) == (False, 60.0, 0.5)
    assert Settings.load(tmp_path, {"min_schedule": "30"}, {"": ""}).min_schedule == 30.0
    for name, value in (("enabled", "perhaps"), ("min_schedule", "soon")):
        with pytest.raises(UserError, match=r"not valid|not a schedule"):
            Settings.load(tmp_path, {name: value}, {"": ""})
