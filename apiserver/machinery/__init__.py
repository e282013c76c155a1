"""Kubernetes API machinery over FastAPI; knows nothing of packages."""
