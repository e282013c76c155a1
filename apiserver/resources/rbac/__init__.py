"""Roles and bindings as served kinds: their definitions, who may write them, those that are always there."""
