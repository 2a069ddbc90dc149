"""A new fit to the kept samples, after classes or learned messages were added, removed or merged."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from skellipsoid_runtime._containers import in_memory

from ..._core.fit_steps import several_groups, warn_of_outliers
from ..._core.labels import as_kind_of, as_labels
from ..._core.norms import usual_norms, zeros_are_none
from ..._core.spelling import refuse_other_spellings
from ..._core.validation import check_groups, check_squares, enumerated
from ..._core.warn import silenced, warn
from ..._held_out.expected import Expected
from ..._samples.samples import find_outliers
from ..._samples.training_samples import TrainingSamples
from ..._torch.threads import one_thread_each
from ..math.boundaries import Fitted
from ..math.covariance import FEWEST_CLASSES_OF_BACKGROUND
from ..methods import method_of
from .learned import WEIGHT, Learned, check_reach, in_units_of_X, standardized
from .rejecting import Rejecting
from .remember import remembered

#: No new class.
NO_NAMES: NDArray[Any] = np.empty(0)
#: Fitted attributes that do not depend on the samples.
_CARRIED = ("n_features_in_", "feature_names_in_", "open_label_", "_norm_range", "_zeros_are_none")


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
    learned = clf._learned
    n_gone = int(kept.copies[gone].sum())
    if learned is not None:
        n_gone += int(np.isin(learned.labels, names).sum())
        learned = learned.without(names)
    changed = _begun(clf, clf.classes_[stay], kept.where(~gone).with_places(places), learned, places)
    return _fitted(clf, changed, _change("remove", names, n_gone), _unaltered(places), clf)


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
    """Choose shrinkage and size anew."""
    changed = _begun(clf, clf.classes_, kept_samples(clf), clf._learned)
    return _fitted(clf, changed, _change("refresh", clf.classes_[:0], 0))


def kept_samples(clf: Any) -> TrainingSamples:
    """Return the training samples; an error says that they were not kept."""
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
) -> Any:
    """Add samples of known and of new classes; shrinkage and size stay."""
    kept = kept_samples(clf)
    X, y = clf._validate_scored_data(X), as_labels(y, "y")
    if len(X) != len(y):
        raise ValueError(f"X has {len(X)} rows, but y has {len(y)} labels; pass one label for each row.")
    check_squares(X)
    check_reach(clf, X)
    y = as_kind_of(y, clf.classes_, "y", "classes_")
    refuse_other_spellings(y, clf.classes_, clf.open_label_, among_new=True)
    is_open = y == clf.open_label_
    numbers = check_groups(groups, len(X))
    classes = np.unique(np.append(clf.classes_, y[~is_open]))
    old = np.searchsorted(classes, clf.classes_)
    kept = kept.with_places(old)
    features = standardized(clf, X)
    codes = np.where(is_open, len(classes), np.searchsorted(classes, y)).astype(np.int64)
    used = _without_outliers(clf, kept, features, codes, ~is_open)
    if used.any():
        own = None if numbers is None else numbers[used]
        kept = kept.with_samples(features[used], codes[used], own, clf.duplicates)
    kept = kept.with_open(features[is_open])
    altered = np.unique(y[~is_open])
    same = _unaltered(old, np.searchsorted(classes, altered))
    change, learned = _change(what, altered, len(y)), clf._learned
    changed = _fitted(clf, _begun(clf, classes, kept, learned, old), change, same, clf)
    if learned is not None and (explained := _explained(changed, altered)).any():
        learned = None if explained.all() else learned.where(~explained)
        change["forgotten"] = int(explained.sum())
        changed = _fitted(clf, _begun(clf, classes, kept, learned, old), change, same, clf)
    _widen_norms(changed, X[used], codes[used])
    return changed


def _explained(changed: Any, altered: NDArray[Any]) -> NDArray[np.bool_]:
    """Mark messages that were labelled open before, and that the altered classes accept, (n_learned,)."""
    learned, classes = changed._learned, changed.classes_
    margins, first = changed._decide(in_units_of_X(changed, learned.features))
    assigned = first[:, 0]
    is_accepted = margins[np.arange(len(margins)), assigned] >= changed.offset_ + changed.class_offsets_[assigned]
    return np.asarray(~np.isin(learned.labels, classes) & np.isin(classes[assigned], altered) & is_accepted)


def with_learned(
    clf: Any, learned: Learned | None, names: NDArray[Any] = NO_NAMES, n_new: int = 0, *, chosen_by: Any = None
) -> Any:
    """Fit with these messages in place of those that were learned.

    Parameters
    ----------
    clf : EllipsoidOpenSetClassifier
    learned : Learned or None
        All messages, ``None`` for none; the last ``n_new`` are new, and a warning names the outliers among them.
    names : ndarray
        Names that become classes.
    chosen_by : EllipsoidOpenSetClassifier, default=None
        Fit with held-out scores, whose shrinkage and size are used; ``None``: they are chosen anew.
    """
    kept, labels = kept_samples(clf), clf.classes_[:0] if learned is None else learned.labels
    classes = np.unique(np.append(clf.classes_, names)) if len(names) else clf.classes_
    sampled = np.append(np.isin(np.arange(len(clf.classes_)), kept.classes), False)
    places = np.searchsorted(clf.classes_, classes).clip(0, len(clf.classes_) - 1)
    has_samples = (clf.classes_[places] == classes) & sampled[places]
    classes = classes[has_samples | np.isin(classes, labels)]
    old = np.where(np.isin(clf.classes_, classes), np.searchsorted(classes, clf.classes_), -1)
    altered = np.flatnonzero(np.isin(classes, labels))
    changed = _begun(clf, classes, kept.with_places(old), learned, None if chosen_by is None else old)
    change, same = _change("learn", classes[altered], n_new), _unaltered(old, altered)
    changed = _fitted(clf, changed, change, same, chosen_by, n_new)
    if learned is not None:
        codes = _codes_among(classes, labels)
        is_known = codes < len(classes)
        _widen_norms(changed, in_units_of_X(clf, learned.features[is_known]), codes[is_known])
    return changed


def _codes_among(classes: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.int64]:
    """Return the number of each label among the classes, their number if it is none of them."""
    codes = np.searchsorted(classes, labels).clip(0, len(classes) - 1)
    return np.where(classes[codes] == labels, codes, len(classes)).astype(np.int64)


def _widen_norms(changed: Any, X: NDArray[Any], codes: NDArray[np.int64]) -> None:
    """Let the usual norms be also those of new samples, which may be zeros, too."""
    changed._zeros_are_none = changed._zeros_are_none and (not len(X) or zeros_are_none(X))
    usual, given = changed._norm_range, usual_norms(X, codes) if len(X) else None
    if usual is not None and given is not None:
        changed._norm_range = np.array([min(usual[0], given[0]), max(usual[1], given[1])])


def _joined(changed: Any, n_new: int) -> TrainingSamples:
    """Add the learned messages to the training samples; in one order, however they came."""
    kept: TrainingSamples = changed._kept
    classes, learned = changed.classes_, changed._learned
    if learned is None:
        return kept
    order = np.lexsort(learned.features.T[::-1])
    features, codes = learned.features[order], _codes_among(classes, learned.labels)[order]
    used = _without_outliers(changed, kept, features, codes, codes < len(classes), order - (len(learned) - n_new))
    if used.any():
        kept = kept.with_samples(features[used], codes[used], None, changed.duplicates, weight=WEIGHT)
    # "None of these" is what users pick of known messages, too, whose class was not offered.
    is_open = (codes == len(classes)) & np.isnan(learned.gaps[order])
    return kept.with_open(features[is_open])


def _without_outliers(
    clf: Any,
    kept: TrainingSamples,
    features: NDArray[np.float32],
    codes: NDArray[np.int64],
    is_known: NDArray[np.bool_],
    called: NDArray[np.int64] | None = None,
) -> NDArray[np.bool_]:
    """Mark known samples that are no outliers, (n_samples,).

    A warning names the outliers, as they are ``called`` if that is given; those of a negative number were named before.
    """
    if clf.outliers == "keep":
        return is_known
    numbers = np.flatnonzero(is_known)
    together = np.concatenate([kept.features, features[numbers]]).astype(np.float64)
    found = find_outliers(together, np.concatenate([kept.classes, codes[numbers]]))
    outlying = numbers[found[found >= len(kept)] - len(kept)]
    named = outlying if called is None else np.sort(called[outlying])
    warn_of_outliers(named[named >= 0])
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
    learned = None if clf._learned is None else clf._learned.renamed(new, clf.classes_[codes])
    n_samples += 0 if learned is None else int((learned.labels == new[0]).sum())
    change = _change("merge", labels, n_samples) | {"into": new.tolist()[0]}
    altered = np.array([place] if len(codes) > 1 else [], dtype=np.int64)
    changed = _begun(clf, classes, kept, learned, places)
    return _fitted(clf, changed, change, _unaltered(places, altered), clf)


def _begun(
    clf: Any,
    classes: NDArray[Any],
    kept: TrainingSamples,
    learned: Learned | None,
    places: NDArray[np.int64] | None = None,
) -> Any:
    """Make a new classifier, which has samples and messages, and is not fitted to them yet.

    ``places`` are the new numbers of the old classes, −1 for those that are removed. The threshold stays as it was;
    without ``places`` it is the fitted boundary.
    """
    changed = clone(clf)
    for name in _CARRIED:
        if hasattr(clf, name):
            setattr(changed, name, getattr(clf, name))
    changed.classes_, changed._kept, changed._learned = classes, kept.normalized(), learned
    changed.offset_, changed.class_offsets_ = 0.0, np.zeros(len(classes))
    changed.traffic_ = changed.asking_ = None
    changed._expected = Expected.of(clf)
    if places is None:
        changed._expected = Expected.by(clf)._replace(projected=changed._expected.projected)
    if places is not None:
        changed.offset_, changed.traffic_, changed.asking_ = clf.offset_, clf.traffic_, clf.asking_
        if clf._taught is not None:
            changed._taught = clf._taught
        offsets, stays = np.full(len(classes), -np.inf), places >= 0
        np.maximum.at(offsets, places[stays], clf.class_offsets_[stays])
        changed.class_offsets_ = np.where(np.isfinite(offsets), offsets, 0.0)
    return changed


def _unaltered(places: NDArray[np.int64], altered: NDArray[np.int64] | tuple[()] = ()) -> dict[int, int]:
    """Old numbers of the classes that have the same samples as before, by their new ones.

    ``altered`` are the new numbers of the others.
    """
    same = {int(new): old for old, new in enumerate(places) if new >= 0}
    return {new: old for new, old in same.items() if new not in altered}


def _fitted(
    clf: Any,
    changed: Any,
    change: dict[str, Any],
    same: Mapping[int, int] = MappingProxyType({}),
    earlier: Any = None,
    n_new: int = 0,
) -> Any:
    """Fit a classifier that was ``_begun`` to its samples, and to the messages that it has learned.

    ``same`` classes, by their new and their old numbers, have the same samples as before. Shrinkage and radius scale
    are those of an ``earlier`` classifier, or are chosen anew. The last ``n_new`` messages are new.
    """
    learned, classes = changed._learned, changed.classes_
    samples = _joined(changed, n_new)
    moved = samples.constants()
    samples, kept = (part.moved(moved, clf.scale_) for part in (samples, changed._kept))
    samples = replace(samples, groups=several_groups(samples.groups, samples.units, samples.classes, classes))
    changed.groups_ = samples.groups_of_rows()
    with one_thread_each():
        fitted, samples = _fitted_to(samples, clf, changed, same, earlier)
    changed._store(fitted, samples.mean, clf.scale_, clf._boundaries.units)
    if changed.trainer is not None and earlier is not None and not fitted.losses:  # nothing was trained
        for name in ("n_iter_", "loss_curve_", "validation_scores_"):
            setattr(changed, name, getattr(earlier, name))
    changed._kept = samples
    if learned is not None:
        changed._kept = kept.decided_by(samples)
        changed._learned = replace(learned, features=learned.features - moved)
        scores = (changed if earlier is None else earlier).held_out_scores_
        if changed.trainer is None:
            memory = remembered(changed._learned, classes, scores)
            changed._boundaries = replace(changed._boundaries, memory=memory)
    changed.changes_ = [*clf.changes_, change]
    return changed


def _fitted_to(
    samples: TrainingSamples, clf: Any, changed: Any, same: Mapping[int, int], earlier: Any
) -> tuple[Fitted, TrainingSamples]:
    """Fit with what an ``earlier`` classifier chose, or choose anew where that does not hold any more."""
    method, classes = method_of(changed), changed.classes_
    if earlier is None:
        return method.fit(samples, classes)
    # Where another one than the changed one chose, that one has the held-out scores.
    given = method.fit(samples, classes, earlier._boundaries, same, with_held_out=earlier is clf)
    was, now = earlier._boundaries.chosen, given[0].boundaries.chosen
    if was is None or now is None:
        return given
    steps_over = was.shrinkage.between is not None and now.shrinkage.between is None
    steps_over |= len(earlier.classes_) < FEWEST_CLASSES_OF_BACKGROUND <= len(classes)
    rejecting = Rejecting.of(clf, given[0]) if earlier is clf else None
    if steps_over or (rejecting is not None and rejecting.too_many):
        seed = method.random_state if isinstance(method.random_state, int) else 0  # a change draws no random number
        with silenced():  # the first fit has said it
            given = replace(method, random_state=seed).fit(samples, classes, with_held_out=earlier is clf)
        if clf.offset_ or clf.traffic_ or clf.asking_:
            warn(
                "Shrinkage and size are chosen anew, since those of before do not suit the classes of now; the "
                "threshold was placed for the former ones: place it again (set_operating_point)."
            )
    elif rejecting is not None and len(rejecting.classes):
        warn(
            f"Up to {100 * rejecting.most:.0f} % of the held-out samples of {enumerated(classes[rejecting.classes])} "
            "are rejected, since shrinkage and size are those of before: refresh chooses them anew."
        )
    return given


def _listed(labels: Any) -> NDArray[Any]:
    """Read one label or several."""
    return as_labels(labels if np.ndim(labels) else np.atleast_1d(labels), "labels")


def _change(what: str, labels: NDArray[Any], n_samples: int) -> dict[str, Any]:
    when = datetime.now(UTC).isoformat(timespec="seconds")
    return {"what": what, "classes": labels.tolist(), "n_samples": n_samples, "when": when}
