"""Deletion vectors: the files in which Delta notes rows of a data file that are gone."""

from __future__ import annotations

import base64
import os
import uuid
from collections.abc import Mapping
from typing import Any

# The log writes an id in the alphabet of ZeroMQ, which Python has under another one.
_ZEROMQ = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_PYTHON = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TO_PYTHON = str.maketrans(_ZEROMQ, _PYTHON)
_ID_LENGTH = 20


def vector_file(root: str, entry: Mapping[str, Any] | None) -> str | None:
    """Where a vector lies, by its entry in the log.

    None when it is in the log itself, or belongs to another table (of which this is a clone).
    """
    if entry is None or entry.get("storageType") != "u":
        return None
    text = str(entry["pathOrInlineDv"])
    folder, encoded = text[:-_ID_LENGTH], text[-_ID_LENGTH:]
    name = uuid.UUID(bytes=base64.b85decode(encoded.translate(_TO_PYTHON)))
    return os.path.join(root, folder, f"deletion_vector_{name}.bin")
