"""Rewrites that keep a query's meaning: of its text, by position, or of its syntax tree."""
