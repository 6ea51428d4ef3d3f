"""From a Hub ``config.json`` to a model: families, layers, parameters and how they are stored."""
