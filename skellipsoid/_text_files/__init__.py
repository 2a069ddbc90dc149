"""Readers and writers of users' files: CSV and other delimited text, JSON lines, JSON, parquet and workbooks.

``read`` takes a path, and gives rows of texts and labels with the number of each line; ``write`` adds columns of
predictions.
"""
