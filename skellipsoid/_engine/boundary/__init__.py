"""From features to boundaries and distances.

The default fit, in the order of the data: ``geometry`` (centroids, distances), ``left_out`` (a class without a set of
its samples), ``shared_shapes`` (covariances that all classes share), ``covariance`` (the ellipsoids of all classes),
``mixtures`` (synthetic classes), ``held_out`` (the table of held-out samples, and the radius scale), ``class_sizes``
(radii by class size), ``boundaries`` (the fitted boundaries); ``closed_form`` runs them. ``paper`` trains the matrices
instead: ``paper_training`` has the losses and the steps, against samples that ``pseudo_open`` draws. ``settings`` holds
the parameters of both; ``radii`` serves the balls among the baselines. The contributing guide has a page with the
formulas: *How a fit runs*.
"""
