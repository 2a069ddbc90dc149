"""Training samples before a fit: their weights, duplicates, groups, folds and moments.

``training_samples`` (from what the user passed to what is kept), ``samples`` (tensors of a fit, groups, outliers),
``moments``, ``duplicates`` (exact and near copies), and ``folds``.
"""
