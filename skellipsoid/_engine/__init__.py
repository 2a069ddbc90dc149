"""Pure torch: what the estimators compute, without knowing any estimator.

The rooms, in the order in which the data passes them: ``text`` (a text model: load, tokenise, embed), ``contrastive``
(the losses' training of a text model or of a linear head on it), ``duplicates`` (exact and near ones, found from
features), ``samples`` (rows with weights and groups), ``geometry`` (centroids, radii, distances, axes), ``left_out`` (a
class without a group of its rows), ``shared_shapes`` (what all classes share), ``covariance`` (the ellipsoids of all
classes), ``pseudo_open`` (what stands in for open samples), ``losses``, ``held_out`` (what validates boundaries, and
their size), ``boundaries`` (what is fitted, and how it scores), ``closed_form`` and ``paper`` (the two ways to fit),
``ellipsoids`` (which of them); ``radii`` (balls, learned) and ``heads`` (logits) for the baselines; ``training`` holds
the one loop that all learners run in, ``progress`` its bar, and ``devices`` what depends on the machine.
"""
