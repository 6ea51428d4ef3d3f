"""The KV cache as engines lay it out, what requests take of it, and where its room goes."""
