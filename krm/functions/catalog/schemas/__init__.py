"""Schemas of Kubernetes objects, from OpenAPI documents and CustomResourceDefinitions, and checking against them."""
