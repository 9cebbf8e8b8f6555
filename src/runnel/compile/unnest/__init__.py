"""Subqueries that refer to the query around them, turned into joins; one idea a file."""
