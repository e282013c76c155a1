"""The porch.kpt.dev API server."""
