"""The views of the Memory page, one module each with ``show(asked, memory)``: they draw, the sums are calc's."""
