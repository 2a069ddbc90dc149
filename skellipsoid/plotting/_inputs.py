"""Input of the displays: classifiers, predictions and scores."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import UndefinedMetricWarning

from .._core.pipelines import less_class_offsets, read_estimator
from .._core.warn import warn
from ..metrics._reading import ClosedSetRows, check_offset, read_closed_set_rows
from ._pictures import require_matplotlib

#: Parameters of ``from_predictions`` by the methods of a classifier.
_ARGUMENTS = {"predict": "y_pred", "predict_known": "y_pred_known", "score_samples": "score"}


def read_classifier(display: type, estimator: Any, X: Any, *members: str, remedy: str = "") -> tuple[Any, Any]:
    """Take the fitted classifier, and its features, for a display's ``from_estimator``.

    Parameters
    ----------
    display : type
    estimator : open-set classifier, or Pipeline or search that ends in one
    X : array-like
    *members : str
        Methods of the classifier that the display needs.
    remedy : str
        Alternative for the user, for the error.
    """
    require_matplotlib(f"{display.__name__}.from_estimator")
    members = (*members, "classes_", "open_label_")
    return read_estimator(estimator, X, members, f"{display.__name__}.from_estimator", remedy)


def read_predictions(display: type, estimator: Any, X: Any, *methods: str) -> dict[str, Any]:
    """Compute the arguments of a display's ``from_predictions``, except the true labels, by a fitted estimator.

    These are the results of the methods, the known classes, the open label, and with a score the offset. Class offsets
    are subtracted from scores, so that open is predicted exactly below the offset.
    """
    with_score = "score_samples" in methods
    members = (*methods, "predict_known", "offset_", "class_offsets_") if with_score else methods
    classifier, features = read_classifier(display, estimator, X, *members, remedy=", or use from_predictions")
    found = {method: getattr(classifier, method)(features) for method in methods}
    options = {"labels": classifier.classes_, "open_label": classifier.open_label_}
    if with_score:
        options["offset"] = classifier.offset_
        if classifier.class_offsets_.any():
            assigned = found["predict_known"] if "predict_known" in methods else classifier.predict_known(features)
            found["score_samples"] = less_class_offsets(classifier, found["score_samples"], assigned)
    return options | {_ARGUMENTS[method]: values for method, values in found.items()}


def read_rows(
    display: type, y_true: ArrayLike, y_pred_known: ArrayLike, score: ArrayLike, offset: float | None, **options: Any
) -> tuple[ClosedSetRows, float | None]:
    """Check the arguments of ``from_predictions`` for a display of known against open samples, and the current offset.

    Parameters
    ----------
    display : type
    y_true, y_pred_known, score : array-like of shape (n_samples,)
    offset : float or None
    **options : dict
        Open label, labels and sample weights.
    """
    require_matplotlib(f"{display.__name__}.from_predictions")
    rows = read_closed_set_rows(y_true, y_pred_known, score, **options)
    if rows.is_known.all():
        raise ValueError(
            f"None of the {len(rows.score)} samples is open, but this picture compares known with open samples: add "
            f"samples with the open label {rows.problem.open_label!r}, or pass the known classes as labels if y names "
            "the classes of open samples."
        )
    if not rows.is_known.any():
        raise ValueError(
            f"All of the {len(rows.score)} samples are open, but this picture compares known with open samples: add "
            "samples of known classes."
        )
    return rows, None if offset is None else check_offset(offset)


def warn_of_missing_classes(rows: ClosedSetRows) -> None:
    """Warn, at the caller of the display, of known classes without a defined F1."""
    missing = rows.problem.classes[np.bincount(rows.problem.true, minlength=len(rows.problem.classes))[:-1] == 0]
    if len(missing):
        warn(
            f"y_true has no row of {len(missing)} of the {len(rows.problem.classes)} known classes, such as "
            f"{missing[0].item()!r}: their F1 is 0 at every threshold.",
            UndefinedMetricWarning,
        )
