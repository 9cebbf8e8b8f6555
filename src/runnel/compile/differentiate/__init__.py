"""Each operator's change from its inputs' changes; one operator a file, each quoting its law."""
