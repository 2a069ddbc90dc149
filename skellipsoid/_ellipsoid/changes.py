"""Classes that come and go after a fit; each change is a new classifier, fitted to the samples that were kept."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from .._core.base import warn_of_outliers
from .._core.labels import as_kind_of, as_labels
from .._core.norms import usual_norms
from .._core.spelling import refuse_other_spellings
from .._core.validation import check_groups, check_squares, enumerated, in_memory
from .._core.warn import warn
from .._samples.samples import find_outliers
from .._samples.training_samples import TrainingSamples
from .math.covariance import FEWEST_CLASSES_OF_BACKGROUND

#: Fitted attributes that do not depend on the samples.
_CARRIED = ("n_features_in_", "feature_names_in_", "open_label_", "_norm_range")


def without_classes(clf: Any, labels: ArrayLike) -> Any:
    """Remove known classes."""
    kept, codes = kept_samples(clf), _codes_of(clf, _listed(in_memory(labels, "labels")))
    stay = np.delete(np.arange(len(clf.classes_)), codes)
    if not len(stay):
        raise ValueError(
            f"All {len(clf.classes_)} known classes would be removed, but at least one must remain: add the new "
            "classes first, or fit a new classifier."
        )
    gone = np.isin(kept.classes, codes)
    names = clf.classes_[np.sort(codes)]
    places = np.full(len(clf.classes_), -1)
    places[stay] = np.arange(len(stay))
    change = _change("remove", names, int(kept.copies[gone].sum()))
    return _fitted_anew(clf, kept.where(~gone).with_places(places), clf.classes_[stay], change, places)


def with_merged(clf: Any, merged: Mapping[Any, Sequence[Any]]) -> Any:
    """Merge known classes into new ones, or rename them."""
    kept, changed = kept_samples(clf), clf
    if not isinstance(merged, Mapping) or not merged:
        raise ValueError(f"merge_classes takes a mapping of a new label to known classes, but got {merged!r}.")
    parts = [label for labels in merged.values() for label in _listed(labels).tolist()]
    twice = sorted({label for label in parts if parts.count(label) > 1}, key=str)
    if twice:
        raise ValueError(f"{enumerated(np.array(twice))} is listed more than once; list each class once.")
    for new, labels in merged.items():
        changed = _merged(changed, kept, new, _listed(labels))
        kept = kept_samples(changed)
    return changed


def refreshed(clf: Any) -> Any:
    """Choose shares and size anew."""
    change = _change("refresh", clf.classes_[:0], 0)
    return _fitted_anew(clf, kept_samples(clf), clf.classes_, change, anew=True)


def kept_samples(clf: Any) -> TrainingSamples:
    """Give the training samples; an error says that they were not kept."""
    check_is_fitted(clf)
    if clf._kept is None:
        raise ValueError(
            f"This {type(clf).__name__} has not kept its training samples, so its classes cannot change: fit it "
            "again with keep_samples=True, the default."
        )
    kept: TrainingSamples = clf._kept
    return kept


def _codes_of(clf: Any, labels: NDArray[Any]) -> NDArray[np.int64]:
    """Numbers of known classes."""
    labels = as_kind_of(labels, clf.classes_, "labels", "classes_")
    unknown = np.setdiff1d(labels, clf.classes_)
    if len(unknown):
        raise ValueError(
            f"{enumerated(unknown)} is not a known class; the known classes are {enumerated(clf.classes_)}."
        )
    return np.searchsorted(clf.classes_, np.unique(labels))


def with_samples(
    clf: Any,
    X: Any,
    y: Any,
    groups: ArrayLike | None = None,
    what: str = "add",
    *,
    weight: float = 1.0,
    anew: bool = False,
    chosen_by: Any = None,
) -> Any:
    """Add samples of known and of new classes; shares and size are chosen as ``_fitted_anew`` says.

    A sample has ``weight`` times the mean weight of the old ones.
    """
    kept = kept_samples(clf)
    X, y = clf._validate_scored_data(X), as_labels(y, "y")
    if len(X) != len(y):
        raise ValueError(f"X has {len(X)} rows, but y has {len(y)} labels; pass one label for each row.")
    check_squares(X)
    y = as_kind_of(y, clf.classes_, "y", "classes_")
    refuse_other_spellings(y, clf.classes_, clf.open_label_, among_new=True)
    is_open = y == clf.open_label_
    numbers = check_groups(groups, len(X))
    classes = np.unique(np.append(clf.classes_, y[~is_open]))
    old = np.searchsorted(classes, clf.classes_)
    kept = kept.with_places(old)
    features = ((X - kept.mean) / clf.scale_).astype(np.float32)
    codes = np.where(is_open, len(classes), np.searchsorted(classes, y)).astype(np.int64)
    used = _without_outliers(clf, kept, features, codes, ~is_open)
    if used.any():
        own = None if numbers is None else numbers[used]
        kept = kept.with_samples(features[used], codes[used], own, clf.duplicates, weight=weight)
    kept = kept.with_open(features[is_open])
    change = _change(what, np.unique(y[~is_open]), len(y))
    altered = np.searchsorted(classes, np.unique(y[~is_open]))
    changed = _fitted_anew(clf, kept, classes, change, old, altered, anew=anew, chosen_by=chosen_by)
    usual, given = clf._norm_range, usual_norms(X[used], codes[used]) if used.any() else None
    if usual is not None and given is not None:
        changed._norm_range = np.array([min(usual[0], given[0]), max(usual[1], given[1])])
    return changed


def _without_outliers(
    clf: Any,
    kept: TrainingSamples,
    features: NDArray[np.float32],
    codes: NDArray[np.int64],
    is_known: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """Mark known samples that are no outliers, (n_samples,); a warning names the outliers."""
    if clf.outliers == "keep":
        return is_known
    numbers = np.flatnonzero(is_known)
    together = np.concatenate([kept.features, features[numbers]]).astype(np.float64)
    found = find_outliers(together, np.concatenate([kept.classes, codes[numbers]]))
    outlying = numbers[found[found >= len(kept)] - len(kept)]
    warn_of_outliers(outlying)
    used = is_known.copy()
    used[outlying] = False
    return used


def _merged(clf: Any, kept: TrainingSamples, new: Any, labels: NDArray[Any]) -> Any:
    codes = _codes_of(clf, labels)
    stay = np.delete(clf.classes_, codes)
    new = as_kind_of(as_labels([new], "the new label"), clf.classes_, "the new label", "classes_")
    if new[0] == clf.open_label_ or np.isin(new, stay)[0]:
        what = "the open label" if new[0] == clf.open_label_ else "a class that stays"
        raise ValueError(f"The new label {new.tolist()[0]!r} is {what}; choose another one, or list this class too.")
    refuse_other_spellings(new, stay, clf.open_label_)
    classes = np.unique(np.append(stay, new))
    place = int(np.searchsorted(classes, new)[0])
    places = np.searchsorted(classes, clf.classes_).clip(0, len(classes) - 1)
    places[codes] = place
    kept = kept.with_places(places)
    if len(codes) > 1:  # duplicates of one class may have been in the other
        empty = kept.features[:0], kept.classes[:0]
        mine = kept.classes == place
        kept = kept.with_samples(*empty, None, clf.duplicates, altered=mine)
    n_samples = int(kept.copies[kept.classes == place].sum())
    change = _change("merge", labels, n_samples) | {"into": new.tolist()[0]}
    altered = np.array([place] if len(codes) > 1 else [], dtype=np.int64)
    return _fitted_anew(clf, kept, classes, change, places, altered)


def _fitted_anew(
    clf: Any,
    kept: TrainingSamples,
    classes: NDArray[Any],
    change: dict[str, Any],
    places: NDArray[np.int64] | tuple[()] = (),
    altered: NDArray[np.int64] | tuple[()] = (),
    *,
    anew: bool = False,
    chosen_by: Any = None,
) -> Any:
    """Fit a new classifier to the samples that are kept.

    ``places`` are the new numbers of the old classes, −1 for those that are removed, and ``altered`` the new
    numbers of classes with other samples than before. Shares and radius scale are those of this classifier, or of
    ``chosen_by``, or are chosen ``anew``.
    """
    changed = clone(clf)
    for name in _CARRIED:
        if hasattr(clf, name):
            setattr(changed, name, getattr(clf, name))
    changed.classes_ = classes
    offsets = np.full(len(classes), -np.inf)
    same = {}
    for old, new in enumerate(places):
        if new >= 0:
            same[int(new)], offsets[new] = old, max(offsets[new], clf.class_offsets_[old])
    changed.class_offsets_ = np.where(np.isfinite(offsets) & (not anew), offsets, 0.0)
    changed.offset_, changed.traffic_ = (0.0, None) if anew else (clf.offset_, clf.traffic_)
    for number in altered:
        same.pop(int(number), None)
    kept = kept.normalized().centred(clf.scale_)
    kept = replace(kept, groups=changed._check_single_groups(kept.groups, kept.units, kept.classes))
    changed.groups_ = kept.groups
    changed._fit_samples(kept, clf.scale_, None if anew else chosen_by or clf, same)
    few, many = len(clf.classes_), len(classes)
    if not anew and clf._boundaries.chosen is not None and few < FEWEST_CLASSES_OF_BACKGROUND <= many:
        warn(
            f"{few} classes are too few for a covariance between classes, so the {many} of now have none "
            "until they are refreshed."
        )
    changed.changes_ = [*clf.changes_, change]
    return changed


def _listed(labels: Any) -> NDArray[Any]:
    """Read one label or several."""
    return as_labels(labels if np.ndim(labels) else np.atleast_1d(labels), "labels")


def _change(what: str, labels: NDArray[Any], n_samples: int) -> dict[str, Any]:
    when = datetime.now(UTC).isoformat(timespec="seconds")
    return {"what": what, "classes": labels.tolist(), "n_samples": n_samples, "when": when}
