"""SQL text to change programs. Pure: no Spark, no files; the only user of sqlglot."""
