"""The PackageVariant controller: one downstream package kept true to its upstream. Source: ``variants.md`` 2."""
