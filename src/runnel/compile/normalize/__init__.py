"""Rewrites of the operator tree that keep its meaning; one pass a file."""
