"""The fit in closed form, in torch and NumPy; of scikit-learn it takes the logistic regression of ``_traffic_model``.

In the order of the data: ``geometry`` (centroids, distances), ``left_out`` (a class without a set of its samples),
``frames`` (covariances that all classes share), ``covariance`` (the ellipsoids of all classes), ``left_out_shapes``
(the same without a set: ``low_rank`` for small sets, ``refits`` for large ones), ``mixtures``
(synthetic classes), ``class_sizes`` (radii by class size), ``boundaries`` (the fitted boundaries); ``table_maker``
fills the table of ``_held_out``, and ``closed_form`` runs all. ``tiles`` multiplies samples by the
axes of their classes.

Words, each with one meaning here; docs/internals.rst has the letters:

- *features*: of samples, in the units of X or standardized; *coordinates*: the same along the axes of a frame or a
  metric; *numbers*: places of samples, or of sets, among all; *row*: of a matrix, or of an array that was passed.
- *unit*: a sample with its duplicates, which are one observation; *group*: samples with one entry of ``groups``.
- *set*: what is left out when a sample is scored, its group and its unit; *block*: what no fold divides, groups joined
  by the units that lie in several of them.
- *left out*: not used when a certain sample is scored; *held out*: scored without itself. A class may be held out, too.
  Outliers and other samples that are never used are *dropped*. What is stored after the fit is *kept*.
- *touched*: a class with samples in the set; *degenerate*: a class without spread.
- *background*: B and μ, from which the means of unknown classes are assumed to be drawn.
- *frame*: the samples in coordinates of their span, and what is computed in them. From ``rotated`` on, T is the
  identity.
- *shrinkage*: the intensities a, b and ρ, in code ``spherical``, ``between`` and ``shared``.
- *shared shape*: Q, the same for all classes; *growth*: the factor of a class's radius by its size.
- *scale*: the radius scale s; outside of this folder ``scale_``, the divisor of the features.
- X are the features of a user, and P is how many samples the paper mixes.
"""
