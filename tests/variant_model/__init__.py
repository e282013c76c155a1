"""A model of the API that the PackageVariant controller works with: objects in memory, faults where a test wants them."""
