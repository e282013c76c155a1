"""The rules of PackageVariantSets: from a set and what it selects to the variants that there should be.

``validation`` → ``targets`` → ``rendering`` (``rendering_worker`` does it in a process of its own) → ``plan`` → ``rollout``.
Source: ``variants.md`` 3 and 6.
"""
