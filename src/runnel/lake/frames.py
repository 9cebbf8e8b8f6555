"""The Spark names that other rooms speak; whatever needs more of Spark lives in this room."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

__all__ = ["Column", "DataFrame", "F", "SparkSession"]
