"""The controller of PackageVariantSets: makes, keeps and removes the PackageVariants that sets ask for."""
