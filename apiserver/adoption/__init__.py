"""``porch adopt``: taking over what another Porch server keeps, with its names, UIDs, metadata and drafts (ADR 0034)."""
