"""Queueing theory on a scenario: each formula beside the simulated figure, with the conditions under which it holds."""
