"""What every estimator of the package uses.

In come features, weights and groups (``validation``), ``labels``, ``texts`` and their ``characters``.
``open_set_classifier`` has the base class of them all, ``fit_steps`` are the steps that each fit calls,
``text_estimators`` is what estimators of texts have in common, ``norms`` a warning of unlike norms. Of fitted
estimators: ``pipelines`` (the classifier at the end of a Pipeline) and ``state_rules`` (fitted state that is saved).
Tools: ``sklearn`` (all that is private in scikit-learn), ``files`` (written whole or not at all, and held by one
process), ``messages`` and ``warn``.
"""
