"""What measurements say about the constants of the step model: a few factors, fitted and carried by the scenario."""
