"""Registered remotes as local bare clones, used at object level."""
