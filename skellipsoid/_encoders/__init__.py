"""Text encoders: from texts to features.

``supcon`` is the estimator. ``training_texts`` are the texts that one is trained on, ``trained_text_features``
trains it, ``text_features`` is what a fitted one does. ``torch`` has the embedding model itself. The estimator is a
dataclass: its fields are the parameters of the ``__init__`` that scikit-learn reads.
"""
