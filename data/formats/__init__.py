"""Readers of other tools' result files: one small file a tool, one signature."""
