"""Proposes and publishes package revisions as their policies say, with a permission of its own. Source: ``variants.md`` 6.3."""
