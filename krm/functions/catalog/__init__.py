"""The functions of the catalog that are built in, a module each, and what they have in common."""
