"""The views of the Catalogue page: GPUs, models, prices and engines; the team's own rows on top."""
