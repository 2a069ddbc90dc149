"""What texts and boundaries both use.

``samples`` (weights, groups) and ``duplicates`` (exact and near copies); ``losses``; ``training`` (the training loop)
and ``progress`` (its bar); ``devices`` (devices, seeds, memory).
"""
