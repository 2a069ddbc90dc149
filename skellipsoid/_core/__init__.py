"""Steps, checks and base classes that all estimators of the package use.

Input is read by ``validation`` (features, weights, groups), ``labels``, ``texts`` and ``characters``.
``open_set_classifier`` has the base class of all classifiers, ``fit_steps`` the steps that each fit calls,
``text_estimators`` the tags of text estimators, ``norms`` the warning for samples with unusual norms. Fitted estimators
are read by ``pipelines`` (the classifier at the end of a Pipeline) and checked by ``state_rules`` (which attributes are
saved and loaded). Tools: ``sklearn`` (all that is private in scikit-learn), ``files`` (written whole or not at all, and
held by one process), ``messages`` and ``warn``.
"""
