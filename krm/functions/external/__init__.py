"""Functions outside this process: programs and containers, and the ResourceLists they are given."""
