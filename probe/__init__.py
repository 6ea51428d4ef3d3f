"""What we measure here: NVML facts and a torch micro-benchmark, always in a process of its own."""
