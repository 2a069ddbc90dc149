"""The classifier with one ellipsoid per class: from features to boundaries and distances.

``classifier`` is the estimator, whose ``fit`` calls all steps. It keeps its training samples
(``_samples.training_samples``), and one of two ``methods`` computes the boundaries from them: by ``math``, the default,
in closed form, or by ``paper``, the paper's training, whose settings are ``elidecide``. What is found are
``math.boundaries:Boundaries``, stored whole; ``scoring``, ``axes``, ``attributes`` and ``state`` (what is saved) read
them. ``changes`` adds, removes and merges classes. The page *Internals* has the formulas.
"""
