"""The test kit: step files, backends that run them, and the tools the algebra is checked with."""
