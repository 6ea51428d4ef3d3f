"""The views of the Benchmarks page."""
