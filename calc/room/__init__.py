"""The rest of a GPU's memory: what weights and runtime leave for the cache, and what shares it."""
