"""A lake for each test, in the shared Spark session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import runnel
from runnel.api import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path, clean_names: None) -> Iterator[Lake]:
    """Empty."""
    with runnel.connect(tmp_path / "lake", spark=spark) as made:
        yield made
