"""What is true: pure arithmetic over bytes, seconds, tokens and shares. No I/O, no clock, no global state."""

MODEL_VERSION = "2026-11-30"
"""Version of the numbers; stored with and printed on every saved result. Bump it when any number changes."""
