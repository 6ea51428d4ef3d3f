"""Prefix reuse of a trace: hit rate against cache capacity, exactly, in one pass."""
