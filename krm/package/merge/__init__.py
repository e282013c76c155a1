"""Three-way merge of packages: origin, updated (new upstream) and local. Source: ``kpt.md`` 3."""
