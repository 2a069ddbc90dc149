"""Checks of training data for possible errors; nothing is changed.

``text_check`` and ``feature_check`` take texts or features with their labels, and give a table of ``findings``.
``duplicate_groups`` gives duplicates as groups.
"""
