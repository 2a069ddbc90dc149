"""The computations of the estimators in torch, NumPy and SciPy, without scikit-learn.

Three folders: ``text`` (from texts to features), ``boundary`` (from features to boundaries and distances) and
``common`` (what both use). Each folder's docstring lists its modules in the order of the data.
"""
