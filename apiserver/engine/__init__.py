"""The rules of package revisions and the use cases built on them."""
