"""Training samples before a fit.

``training_samples`` (from what the user passed to what is kept), ``samples`` (tensors of a fit, groups, outliers),
``moments``, ``duplicates`` (exact and near copies), and ``folds``.
"""
