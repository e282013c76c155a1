"""Kubernetes Resource Model: objects, packages and functions; no HTTP, no SQL, no Git."""
