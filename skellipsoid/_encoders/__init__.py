"""Text encoders: map texts to features.

``supcon`` has the estimator. Its base ``trained_text_features`` has the fit, ``training_texts`` finds what is trained
on and held out, ``text_features`` has what a fitted encoder does. ``torch`` has the embedding model and its training.
The estimator is a dataclass: its fields are the parameters of the ``__init__`` that scikit-learn reads.
"""
