"""The classifier with one ellipsoid per class: from features to boundaries and distances.

``classifier`` is the estimator; ``kept_samples`` fits it, by ``math`` (the default, in closed form) or by ``paper``
(the paper's training, whose settings are ``elidecide``). ``stored_shapes`` is what a fit stores and how samples are
scored; ``axes`` are the axes of the ellipsoids. The page *Internals* has the formulas.
"""
