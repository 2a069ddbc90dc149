"""What texts and boundaries both use.

``samples`` (weights, groups), ``duplicates`` (exact and near copies) and ``folds``; ``losses``; ``training`` (the
training loop) and ``progress`` (its bar); ``devices`` (devices, seeds, memory); ``imports``.
"""
