"""The rules of package revisions: plain functions that know no HTTP, SQL or Git."""
