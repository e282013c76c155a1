"""The package toolchain: contents in memory, Kptfile edits, what new packages start with."""
