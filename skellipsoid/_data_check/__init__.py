"""Checks of training data for possible errors; nothing is changed.

In come texts or features with their labels (``texts``, ``features``). Out goes a table of ``findings``.
Readers of files use ``headers``, too, which imports nothing that takes long.
"""
