"""PostgreSQL queries translated to Spark SQL that gives PostgreSQL's answer, or refused."""
