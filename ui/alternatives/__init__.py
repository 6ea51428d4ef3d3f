"""The views of the Alternatives page, one module each with ``show(asked)``: they draw, the sums are calc's."""
