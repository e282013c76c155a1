"""The rules of PackageVariants and PackageVariantSets: values in, values out.

Controllers perform what is decided here; the server's preview asks the same rules. Source: ``variants.md``.
"""
