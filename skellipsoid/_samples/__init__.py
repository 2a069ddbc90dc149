"""Training samples before a fit.

``samples`` (weights, groups, outliers), ``moments``, ``duplicates`` (exact and near copies), ``made_up``
(samples of SMOTE) and ``folds``.
"""
