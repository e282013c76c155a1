"""An API server in memory with everybody who has to do with sets: people, the variants' controller, the garbage collector."""
