"""Rewrites of the syntax tree that keep its meaning; one pass a file."""
