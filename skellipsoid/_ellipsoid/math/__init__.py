"""The fit in closed form, in torch and NumPy, without scikit-learn.

In the order of the data: ``geometry`` (centroids, distances), ``left_out`` (a class without a set of its samples),
``shared_shapes`` (covariances that all classes share), ``covariance`` (the ellipsoids of all classes), ``mixtures``
(synthetic classes), ``held_out`` (the table of held-out samples, and the radius scale), ``class_sizes`` (radii by class
size), ``boundaries`` (the fitted boundaries); ``closed_form`` runs them. ``settings`` holds the parameters, those of
the paper's training too.
"""
