"""A lake for each test, in the shared Spark session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import runnel
from refresh.helpers import Source, orders
from runnel.api import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path, clean_names: None) -> Iterator[Lake]:
    """Empty."""
    with runnel.connect(tmp_path / "lake", spark=spark) as made:
        yield made


@pytest.fixture
def other(lake: Lake, spark: SparkSession) -> Iterator[Lake]:
    """The same lake, opened once more."""
    with runnel.connect(lake._workspace.path, spark=spark) as made:
        yield made


@pytest.fixture
def source(lake: Lake, tmp_path: Path) -> Source:
    return orders(lake, tmp_path)
