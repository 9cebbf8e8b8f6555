"""Where deletion vectors lie, as the log writes it."""

from __future__ import annotations

from runnel.lake.vectors import vector_file


def test_an_id_is_read_as_the_protocol_writes_it() -> None:
    """The example of Delta's protocol."""
    entry = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4}
    name = "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    assert vector_file("/t", entry) == f"/t/ab/{name}"
    entry["pathOrInlineDv"] = "^-aqEH.-t@S}K{vb[*k^"
    assert vector_file("/t", entry) == f"/t/{name}"


def test_what_is_in_the_log_itself_has_no_file() -> None:
    assert (
        vector_file(
            "/t",
            {
                "storageType": "i",
                "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
            },
        )
        is None
    )
    assert vector_file("/t", None) is None
