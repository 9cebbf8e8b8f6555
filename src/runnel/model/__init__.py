"""Frozen values that every room speaks."""
