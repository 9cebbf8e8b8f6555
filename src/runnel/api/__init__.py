"""The verbs: connect, create, alter, drop, refresh, verify ... Each delegates to its room."""

from runnel.api.connecting import connect
from runnel.api.lake import Lake

__all__ = ["Lake", "connect"]
