"""Everything that touches Spark and Delta: sessions, pinned reads, changes, traces."""
