"""Scorers for ``scoring=``: metrics of a fitted estimator, with every label outside its ``classes_`` read as open."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from inspect import signature
from typing import Any, Literal, Self

from numpy.typing import ArrayLike
from sklearn import get_config
from sklearn.utils.metadata_routing import MetadataRequest

from .._core.open_set_classifier import BaseOpenSetClassifier
from .._core.pipelines import closed_set_prediction, known_classes, knownness, open_label_of, split_estimator
from .._core.warn import warn
from ._classification import open_set_accuracy, open_set_f1_score

Response = Literal["predict", "score", "known_and_score"]


class _OpenSetScorer:
    """Callable ``scorer(estimator, X, y, sample_weight=None)``; a class, so that parallel searches can pickle it."""

    def __init__(self, metric: Callable[..., float], response: Response, sign: int, parameters: dict[str, Any]) -> None:
        self.metric, self.response, self.sign, self.parameters = metric, response, sign, parameters
        self.weight_request: bool | str | None = None

    def __call__(self, estimator: Any, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        classes, open_label = known_classes(estimator), open_label_of(estimator)
        warn_of_lost_open_prediction(estimator)
        if self.response == "predict":
            predictions: tuple[Any, ...] = (estimator.predict(X),)
        elif self.response == "score":
            predictions = (knownness(estimator, X),)
        else:
            predictions = (closed_set_prediction(estimator, X), knownness(estimator, X))
        weighted = {} if sample_weight is None else {"sample_weight": sample_weight}
        return self.sign * self.metric(
            y, *predictions, labels=classes, open_label=open_label, **self.parameters, **weighted
        )

    def set_score_request(self, *, sample_weight: bool | str | None) -> Self:
        """Say whether the scorer asks for weights, under scikit-learn's metadata routing.

        Parameters
        ----------
        sample_weight : bool, str or None
            Whether to ask for weights, or under which name; ``None`` makes passing weights an error.

        Returns
        -------
        scorer : callable
            A copy: the ready scorers of this module stay as they are.

        Raises
        ------
        RuntimeError
            If metadata routing is not enabled.
        """
        if not get_config()["enable_metadata_routing"]:
            raise RuntimeError(
                "set_score_request acts under metadata routing alone; enable it with "
                "sklearn.set_config(enable_metadata_routing=True)."
            )
        scorer = copy(self)
        scorer.weight_request = sample_weight
        return scorer

    def get_metadata_routing(self) -> MetadataRequest:
        """Tell scikit-learn what the scorer asks for."""
        request = MetadataRequest(owner=repr(self))
        request.score.add_request(param="sample_weight", alias=self.weight_request)
        return request

    def _accept_sample_weight(self) -> bool:
        """Tell scikit-learn's searches without routing whether to pass the weights of ``fit`` on."""
        return "sample_weight" in signature(self.metric).parameters

    def __repr__(self) -> str:
        parameters = "".join(f", {name}={value!r}" for name, value in self.parameters.items())
        better = "" if self.sign > 0 else ", greater_is_better=False"
        return f"make_open_set_scorer({self.metric.__name__}, response={self.response!r}{better}{parameters})"


def make_open_set_scorer(
    metric: Callable[..., float],
    *,
    response: Response | Literal["auto"] = "auto",
    greater_is_better: bool = True,
    **parameters: Any,
) -> _OpenSetScorer:
    """Make a scorer for cross-validation and searches from an open-set metric.

    The scorer reads every label in ``y`` that is not in the ``classes_`` of the fitted estimator as open, so that
    classes which ``OpenSetKFold`` left out of training are open. It works with any estimator that has ``classes_``,
    alone, at the end of a Pipeline or inside a search.

    Parameters
    ----------
    metric : callable
        ``metric(y_true, prediction, *, labels, open_label, **parameters)``, such as the functions of this module. If
        the scorer gets ``sample_weight``, it passes it to the metric.
    response : {"auto", "predict", "score", "known_and_score"}, default="auto"
        What the metric gets from the estimator. ``"predict"``: labels. ``"score"``: the knownness (``score_samples``,
        else the largest column of ``decision_function`` or ``predict_proba``). ``"known_and_score"``: the closed-set
        prediction and the knownness. ``"auto"``: ``"score"`` for a metric whose second argument is named ``score``,
        ``"known_and_score"`` where the third is, else ``"predict"``.
    greater_is_better : bool, default=True
        Whether the metric is better when it is larger; otherwise the scorer negates it.
    **parameters : dict
        Further arguments of the metric.

    Returns
    -------
    scorer : callable
        ``scorer(estimator, X, y, sample_weight=None)`` -> float, for ``scoring=``. Its
        ``set_score_request(sample_weight=True)`` gives a scorer that requests weights under scikit-learn's metadata
        routing.

    Raises
    ------
    ValueError
        If ``response`` is none of the four.

    Warns
    -----
    UserWarning
        When the scorer is called with an estimator that wraps an open-set classifier and never predicts open, such as
        ``CalibratedClassifierCV``; see the :ref:`User Guide <wrappers>`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import cross_val_score
    >>> from skellipsoid import EllipsoidOpenSetClassifier
    >>> from skellipsoid.metrics import make_open_set_scorer, open_f1_score
    >>> from skellipsoid.model_selection import OpenSetKFold
    >>> X, y = load_iris(return_X_y=True)
    >>> scores = cross_val_score(
    ...     EllipsoidOpenSetClassifier(random_state=0),
    ...     X,
    ...     y,
    ...     cv=OpenSetKFold(3, shuffle=True, random_state=0),
    ...     scoring=make_open_set_scorer(open_f1_score, zero_division=0),
    ... )
    >>> scores.shape
    (3,)

    Metrics of scores:

    >>> from skellipsoid.metrics import fpr_at_tpr, open_set_auroc, oscr_score
    >>> auroc_scorer = make_open_set_scorer(open_set_auroc)
    >>> neg_fpr_scorer = make_open_set_scorer(fpr_at_tpr, greater_is_better=False)
    >>> oscr_scorer = make_open_set_scorer(oscr_score)
    """
    if response == "auto":
        response = response_for(metric)
    if response not in ("predict", "score", "known_and_score"):
        raise ValueError(f"response={response!r} is unknown; use 'auto', 'predict', 'score' or 'known_and_score'.")
    return _OpenSetScorer(metric, response, 1 if greater_is_better else -1, parameters)


def response_for(metric: Callable[..., float]) -> Response:
    """Tell by the names of its arguments what a metric is computed of."""
    try:
        second, third = [*signature(metric).parameters, "", "", ""][1:3]
    except (TypeError, ValueError):  # a callable that does not tell its arguments
        return "predict"
    return "score" if second == "score" else "known_and_score" if third == "score" else "predict"


def warn_of_lost_open_prediction(estimator: Any) -> None:
    """Warn of an estimator that wraps an open-set classifier of this package, but predicts differently."""
    last = split_estimator(estimator)[1]
    if isinstance(last, BaseOpenSetClassifier) or not hasattr(last, "get_params"):
        return
    inside = [part for part in last.get_params().values() if isinstance(part, BaseOpenSetClassifier)]
    if inside:
        warn(
            f"{type(last).__name__} does not pass on the open predictions of the {type(inside[0]).__name__} inside it; "
            "score that classifier itself, or a Pipeline, a search or a TunedOperatingPointCV around it."
        )


#: Macro F1 over the known classes and open.
open_set_f1_scorer = make_open_set_scorer(open_set_f1_score)
#: Proportion of correct predictions, open ones included.
open_set_accuracy_scorer = make_open_set_scorer(open_set_accuracy)
