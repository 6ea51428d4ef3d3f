"""KV outside the GPU: what a fetch takes beside computing again, tier by tier, and what it does under load."""
