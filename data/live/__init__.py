"""A running engine watched over time: allowed addresses, scrapes, recordings and their replay."""
