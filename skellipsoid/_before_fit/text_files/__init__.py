"""Texts and labels from the files that people have: tab-separated, CSV of any kind, JSON lines, JSON, parquet."""
