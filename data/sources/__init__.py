"""Live sources: Prometheus text of engines and of DCGM."""
