"""What an engine said about its memory at start: the log beside the estimate, and in its place."""
