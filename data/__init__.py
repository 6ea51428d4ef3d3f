"""What we remember: catalogue tables, readers of foreign files, live sources, the DuckDB store."""
