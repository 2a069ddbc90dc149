"""Checks of training data for possible errors; nothing is changed.

In come texts or features with their labels (``text_check``, ``feature_check``). Out goes a table of ``findings``.
``duplicate_groups`` gives duplicates as groups.
"""
