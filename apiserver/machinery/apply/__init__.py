"""Server-side apply: who manages which fields, and merging what somebody applies into what is there."""
