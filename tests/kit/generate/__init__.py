"""Generated cases: schemas, queries, contents and change sequences."""
