"""The computations of the estimators in pure torch, without scikit-learn.

The modules in the order of the data: ``text`` (load a text model, tokenise, embed), ``contrastive`` (train a text model
or a linear head), ``duplicates`` (find exact and near duplicates), ``samples`` (weights and groups), ``geometry``
(centroids, radii, distances), ``left_out`` (a class without a set of its samples), ``shared_shapes`` (covariances that
all classes share), ``covariance`` (the ellipsoids of all classes), ``pseudo_open`` (synthetic open samples),
``losses``, ``held_out`` (validation and radius scale), ``boundaries`` (the fitted boundaries), ``closed_form`` and
``paper`` (the two fits); ``radii`` (balls) and ``heads`` (logits) for the baselines. ``settings`` holds the parameters
of the two fits, ``training`` the training loop, ``progress`` its bar, ``tokens`` counts tokens, and ``devices`` handles
devices, seeds and memory.
"""
