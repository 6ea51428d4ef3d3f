"""Seconds of one engine step: its kernels, what GPUs reach of their peaks, and which bound holds."""
