"""Settings for Sparks that see a few rows at a time."""

from __future__ import annotations

import os


def uncompiled() -> dict[str, str]:
    """Stages as they are; with RUNNEL_TEST_COMPILED Spark compiles them, as it does for users."""
    if os.environ.get("RUNNEL_TEST_COMPILED"):
        return {}
    # To compile the code of a stage takes longer than a few rows do without.
    return {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
