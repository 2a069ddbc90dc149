"""From features to boundaries and distances.

The default fit, in the order of the data: ``geometry`` (centroids, distances), ``left_out`` (a class without a set of
its samples), ``shared_shapes`` (covariances that all classes share), ``covariance`` (the ellipsoids of all classes),
``pseudo_open`` (synthetic open samples), ``held_out`` (validation and radius scale), ``class_sizes`` (radii by class
size), ``boundaries`` (the fitted boundaries); ``closed_form`` runs them. ``paper`` trains the matrices instead.
``settings`` holds the parameters of both; ``radii`` serves the balls among the baselines.
"""
