"""One replica under load, request by request: arrivals, the compiled scheduler, and its limits for ever."""
