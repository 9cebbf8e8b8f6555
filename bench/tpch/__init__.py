"""TPC-H: its 22 queries kept as stream tables while its refresh functions run."""
