"""The table of held-out samples that a fit keeps: as the attribute ``held_out_``, and for what compares new scores."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from .._core.pipelines import less_class_offsets
from .._core.results import Result
from .expected import Expected
from .table import LEARNED, REAL, SYNTHETIC, HeldOutTable


class Placed(NamedTuple):
    """Where a threshold and its zones were placed, and for what traffic."""

    offset: float
    traffic: Mapping[str, float] | None = None
    asking: Mapping[str, float] | None = None


class KeepsHeldOutMixin:
    """Mixin of a classifier whose fit scores samples that it holds out."""

    classes_: NDArray[Any]
    open_label_: Any
    #: ``None`` if nothing was held out. Missing if the threshold was not chosen.
    _held_out: HeldOutTable | None
    #: Whether held-out known samples score as new known ones do, so that traffic can be compared with them. Where a fit
    #: without a class changes the scores of all others, they do not: mean p-values of 0.58 to 0.70 in place of 0.50 for
    #: logits and neighbours.
    _scores_as_new: ClassVar[bool] = False
    #: What :func:`~skellipsoid.set_operating_point` learned of the traffic, by the keys that it names; ``None``:
    #: nothing.
    traffic_: Mapping[str, float] | None = None
    #: Where :func:`~skellipsoid.predict_set` asks, by the keys that :func:`~skellipsoid.set_operating_point` names;
    #: ``None``: as the fit expects the traffic.
    asking_: Mapping[str, float] | None = None
    #: What the last learning placed, which ``set_operating_point`` goes back to; ``None``: the fitted boundary.
    _taught: Placed | None = None

    @property
    def held_out_(self) -> Bunch | None:
        """Scores of held-out samples, and of samples whose class was held out, which stand in for open ones.

        Arrays of shape (n_held_out,), so that ``pandas.DataFrame(clf.held_out_)`` is a table; ``None`` if nothing was
        held out:

        - ``is_open``: false where the sample was scored by a fit without it, true where it was scored by a fit without
          its whole class. Training samples with the open label are open too.
        - ``label``: the sample's own label.
        - ``nearest_class``: the class that it was assigned to.
        - ``score``: its score, as ``score_samples`` gives it: ``predict`` rejects what is below ``offset_`` (plus the
          entry of ``class_offsets_`` for the nearest class).
        - ``weight``: its weight.
        - ``rank``: of a known sample the place of its own class in the order of the classes, 1 to 3, and 0 where it is
          none of the first three; 0 of open ones.
        - ``gap``: how much the second class is behind the first, in the unit of what orders them; infinite of one
          class. Ellipsoids are ordered by their squared distances in radii, less a number of each class.
        """
        check_is_fitted(self)
        if "_held_out" not in vars(self):
            raise AttributeError(
                f"{type(self).__name__} has no held_out_: its threshold was given, not chosen by held-out samples."
            )
        if self._held_out is None:
            return None
        table = self._held_out.where(self._held_out.kinds != SYNTHETIC)
        return Result(
            is_open=table.is_open,
            label=self._possible_labels()[table.classes],  # type: ignore[attr-defined]
            nearest_class=self.classes_[table.assigned],
            score=table.scores,
            weight=table.weights,
            rank=table.ranks,
            gap=table.gaps,
        )


def held_out_of(classifier: Any, caller: str) -> HeldOutTable:
    """Return the table of held-out samples that new scores are compared with, for the traffic that the fit expects.

    Raises
    ------
    TypeError
        If the classifier keeps none.
    ValueError
        If its fit held out no sample.
    """
    name = type(classifier).__name__
    if not hasattr(classifier, "_scores_as_new") or not hasattr(classifier, "held_out_"):
        raise TypeError(
            f"{caller} reads held_out_, which this {name} does not have: pass an EllipsoidOpenSetClassifier, or a "
            "MahalanobisClassifier with threshold='auto'."
        )
    if not classifier._scores_as_new:
        raise TypeError(
            f"{caller} compares new scores with held-out ones, which are on another scale for a {name}: pass an "
            "EllipsoidOpenSetClassifier, or a MahalanobisClassifier with threshold='auto'."
        )
    table: HeldOutTable | None = classifier._held_out
    if table is None or table.is_open.all():
        raise ValueError(
            f"{caller} compares with held-out samples, but the fit of this {name} held out none; fit with several "
            "different samples of a class (with a trainer, a part of them is held out)."
        )
    learned, kinds = getattr(classifier, "_learned", None), table.kinds.copy()
    if learned is not None:  # they stand at the end
        real = np.flatnonzero(kinds == REAL)
        n_learned = int((~np.isin(learned.labels, classifier.classes_)).sum())
        kinds[real[max(len(real) - n_learned, 0) :]] = LEARNED
    return replace(table, kinds=kinds, expected=Expected.of(classifier))


def held_out_rows(classifier: Any, caller: str) -> dict[str, Any]:
    """Labels, predictions and scores of held-out samples of a fitted classifier, as arguments of metrics and displays.

    The class offsets are subtracted from the scores, so that ``predict`` rejects what lies below the offset.

    Raises
    ------
    TypeError
        If the classifier keeps no held-out samples.
    ValueError
        If nothing, or no class, was held out of the fit.
    """
    name = type(classifier).__name__
    if isinstance(classifier, KeepsHeldOutMixin):
        check_is_fitted(classifier)
    if not hasattr(classifier, "held_out_"):
        raise TypeError(
            f"{caller} reads held_out_, which this {name} does not have: pass new samples with their labels, or a "
            "classifier that holds samples and classes out, such as EllipsoidOpenSetClassifier."
        )
    held_out = classifier.held_out_
    if held_out is None or not held_out.is_open.any():
        what = "sample" if held_out is None else "class"
        raise ValueError(
            f"The fit of this {name} held out no {what}, so that nothing stands in for open samples: pass new samples "
            "with their labels, some of them open."
        )
    truth = classifier._possible_labels()[
        np.where(held_out.is_open, len(classifier.classes_), classifier._encode(held_out.label))
    ]
    return {
        "y_true": truth,
        "y_pred_known": held_out.nearest_class,
        "score": less_class_offsets(classifier, held_out.score, held_out.nearest_class),
        "offset": classifier.offset_,
        "open_label": classifier.open_label_,
        "labels": classifier.classes_,
        "sample_weight": held_out.weight,
    }
