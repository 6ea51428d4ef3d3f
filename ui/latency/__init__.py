"""The views of the Latency page, one module each with ``show(asked, latency)``: they draw, the sums are calc's."""
