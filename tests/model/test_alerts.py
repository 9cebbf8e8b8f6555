"""Kinds of alerts, and which of them belong together."""

from __future__ import annotations

import json

import pytest

from runnel.errors import UserError
from runnel.model.alerts import ENDS, LASTING, Alert, AlertKind, key_of
from runnel.model.names import TableName


def test_what_lasts_is_ended_by_one_kind_that_does_not_last():
    ended = [kind for kinds in ENDS.values() for kind in kinds]
    assert len(ended) == len(set(ended))
    assert not ENDS.keys() & LASTING
    assert {k for k in AlertKind if not k.is_lasting} - ENDS.keys() == {
        AlertKind.REFRESH_FAILED, AlertKind.REFRESH_COMPLETED
    }  # fmt: skip


def test_trouble_is_what_needs_someone():
    assert AlertKind.REFRESH_FAILED.is_trouble
    assert AlertKind.AUTO_SUSPENDED.is_trouble
    assert not AlertKind.SUSPENDED.is_trouble
    assert not AlertKind.RESUMED.is_trouble


def test_a_kind_is_read_in_any_case():
    assert AlertKind.parse(" STALE") is AlertKind.STALE
    with pytest.raises(UserError, match="is not a kind of alert") as caught:
        AlertKind.parse("late")
    assert "refresh_failed" in str(caught.value)


@pytest.mark.parametrize("name", ["Sales", "mart.Big", "`my table`", "`a.b`"])
def test_a_shown_name_has_the_key_of_the_table(name: str):
    table = TableName.parse(name)
    if "." not in table.name:
        assert key_of(str(table)) == table.key


def test_an_alert_reads_as_a_line_and_is_json():
    alert = Alert(AlertKind.STALE, "sales", "is 90 s behind", {"lag_seconds": 90.0})
    assert str(alert) == "stale: sales: is 90 s behind"
    assert json.loads(json.dumps(alert.to_dict()))["facts"] == {"lag_seconds": 90.0}
    assert str(Alert(AlertKind.WEBHOOK_FAILED, None, "no")) == "webhook_failed: no"
