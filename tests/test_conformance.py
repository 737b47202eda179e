"""Recorded PyTorch facts, compared by the contract of exactness (`tests/exactness.py`)."""

from __future__ import annotations

import pytest

from tests.conformance import COMPARISONS, Record, difference, expected_failures, records
from tests.rows import each_row

RECORDS = [(kind, record) for kind in COMPARISONS for record in records(kind)]

NOT_YET = expected_failures()


@each_row(("kind", "record"), RECORDS, lambda row: f"{row[0]}/{row[1]['id']}")
def test_record(kind: str, record: Record) -> None:
    found = difference(kind, record)
    if f"{kind}/{record['id']}" not in NOT_YET:
        assert found is None, found
    elif found is None:
        pytest.fail("conforms now: run `python -m tests.conformance --update`")
    else:
        pytest.xfail("does not conform yet")


def test_expected_failures_are_records() -> None:
    assert NOT_YET - {f"{kind}/{record['id']}" for kind, record in RECORDS} == set()
