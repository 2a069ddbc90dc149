"""Training samples before a fit.

``samples`` (weights, groups, outliers), ``moments``, ``duplicates`` (exact and near copies) and ``folds``.
"""
