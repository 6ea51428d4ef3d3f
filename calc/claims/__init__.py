"""Published headline figures, computed again under their own conditions by this project's models."""
