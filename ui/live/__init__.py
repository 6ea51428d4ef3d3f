"""The views of the Live engine page."""
