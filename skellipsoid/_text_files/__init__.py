"""Texts and labels from the files that people have: tab-separated, CSV of any kind, JSON lines, JSON, parquet.

In comes a path. Out come rows of texts and labels, with the number of each line (``read``), or a file is written
(``write``).
"""
