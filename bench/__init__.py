"""Benchmarks: programs that print a table and write JSON, comparing ways inside one run."""
