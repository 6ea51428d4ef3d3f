"""One load point taken apart: the parts of slow requests, short against long, what a token waits for, an hour."""
