"""Controllers: clients of the API that keep PackageVariants true. A process of their own: ``python -m controllers``."""
