"""What every estimator of the package uses.

``base`` is the base class of all open-set classifiers, ``text_estimators`` what estimators of texts have in common.
Input: ``validation`` (features, weights, groups), ``labels``, ``texts``, ``norms`` (a warning of unlike norms) and
``answers`` (labels and scores that metrics read). Fitted estimators: ``held_out_scores``, ``pipelines`` (the classifier
at the end of a Pipeline) and ``state_rules`` (fitted state that is saved). Tools: ``sklearn`` (all that is private in
scikit-learn), ``files`` and ``file_locks``, ``pictures`` (what drawing needs of matplotlib), ``shared_docs``,
``warn``.
"""
