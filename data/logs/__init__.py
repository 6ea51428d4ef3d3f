"""Logs of requests: recognised by content, loaded by DuckDB in its own folder, profiled where they lie."""
