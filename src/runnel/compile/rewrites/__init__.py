"""Rewrites of the syntax tree before it is built; one pass a file."""
