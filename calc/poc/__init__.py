"""The evaluation matrix: which combinations a proof of concept has to measure, and what each cell's runs say."""
