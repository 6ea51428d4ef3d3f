"""Can a benchmark run be believed? Rules over the run's own numbers."""
