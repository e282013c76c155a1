"""Custom resources: the CustomResourceDefinition kind, and the kinds that users define with it."""
