"""Paragraphs that the docstrings of several classes have in common."""

from .._core.paragraphs import with_paragraphs

#: Paragraph for each ``{name}`` in a docstring.
PARAGRAPHS = {
    "estimator": """
        estimator : classifier, default=None
            Source of the logits: any scikit-learn classifier with ``decision_function`` (logits) or ``predict_proba``
            (probabilities, which are turned into logits). It is cloned and fitted, with ``sample_weight`` if its
            ``fit`` takes it. A fitted classifier in a :class:`~sklearn.frozen.FrozenEstimator` is not fitted again; its
            classes must be those of ``y``. With an estimator that takes them, ``X`` may be sparse or texts; equal rows
            are then the only duplicates. ``None``: logistic regression, see Notes.
        """,
    "chosen_threshold": """
        ``"quantile"`` rejects 5 % of the held-out known samples (five folds; groups are never divided). ``"auto"``
        maximises the expected F1 (:ref:`thresholds`): each fold is fitted once more without a fifth of the classes,
        whose samples then count as open, with their scores mapped to the scale of the fit with all classes (not needed
        for relative Mahalanobis distances). ``MahalanobisClassifier`` expects the traffic of its parameters, the other
        methods a quarter, a half or three quarters of open samples; with fewer than three classes and no samples of
        ``open_label`` these use ``"quantile"``.
        """,
    "frozen_estimator": """
        A frozen estimator cannot be refitted without a fold, so pass samples that it was not fitted on, and for
        ``"auto"`` also samples of ``open_label``.
        """,
    "duplicates": """
        duplicates : {"once", "each", "off"}, default="once"
            Weight of exact and near duplicates of a sample within its class. ``"once"``: together they have the weight
            of one sample. ``"each"``: each has its own weight. ``"off"``: duplicates are not searched. Read more in the
            :ref:`User Guide <repeated>`.
        """,
    "open_label": """
        open_label : int or str, default=-1
            The label of open samples, cast to the type of the classes: −1 for numbers, ``"-1"`` for strings. Samples
            with this label in ``y`` are used by ``threshold="auto"`` only.
        """,
    "random_state": """
        random_state : int, RandomState instance or None, default=0
            Seed of the folds and of the held-out classes. With fewer than 2,000 samples they are drawn up to five
            times, and the thresholds are averaged.
        """,
    "unused_open_label": """
        open_label : int or str, default=-1
            The label of open samples, cast to the type of the classes: −1 for numbers, ``"-1"`` for strings. Samples
            with this label in ``y`` are not used.
        """,
    "classes": """
        classes_ : ndarray of shape (n_classes,)
            The known classes.

        open_label_ : int, float or str
            The open label, in the type of ``classes_``.
        """,
    "logits": """
        logit_estimator_ : classifier or None
            The fitted source of the logits; ``None`` with ``estimator=None``.

        coef_ : ndarray of shape (n_classes, n_features) or None
            Weights of the logistic regression, in the units of X; ``None`` with an ``estimator``.

        intercept_ : ndarray of shape (n_classes,) or None
            Logits of the logistic regression at the mean of the training samples; ``None`` with an ``estimator``.
        """,
    "threshold": """
        threshold_ : float
            Samples with a lower score are open; ``score_samples`` is the score minus ``threshold_``.
        """,
    "offset": """
        offset_ : float
            ``predict`` returns open if ``score_samples`` is below it. 0 after ``fit``, which is the fitted boundary.

        class_offsets_ : ndarray of shape (n_classes,)
            Added to ``offset_`` for each class. Zeros after ``fit``.
        """,
    "groups": """
        groups_ : ndarray of shape (n_samples,)
            Samples with the same number were held out together: the ``groups`` given to ``fit``, else the duplicates
            found. −1 for samples of weight 0 and outliers.
        """,
    "unused_groups": """
        groups_ : ndarray of shape (n_samples,)
            The ``groups`` given to ``fit``, else the duplicates found. Groups have no effect on this method. −1 for
            samples of weight 0 and outliers.
        """,
    "features": """
        n_features_in_ : int
            Number of features seen in ``fit``.

        feature_names_in_ : ndarray of shape (`n_features_in_`,)
            Names of the features, if X has names that are all strings.
        """,
    "logistic_regression": """
        With ``estimator=None`` the logits are those of scikit-learn's :class:`~sklearn.linear_model.LogisticRegression`
        with ``C=3``. Its features are centred, and divided by their root mean squared distance to the mean. To choose
        another strength of the regularisation, pass an ``estimator``.
        """,
}


shared_docs = with_paragraphs(PARAGRAPHS)
