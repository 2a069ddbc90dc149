"""The held-out scores that a fit keeps: known samples, and samples of classes that were held out."""

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from .._core.pipelines import less_class_offsets
from .._core.results import Result


class Placed(NamedTuple):
    """Where a limit and its zones were placed, and for what traffic."""

    offset: float
    traffic: Mapping[str, float] | None = None
    asking: Mapping[str, float] | None = None


class KeepsHeldOutMixin:
    """Mixin of a classifier whose fit scores samples that it holds out."""

    classes_: NDArray[Any]
    open_label_: Any
    #: Codes of classes and the scores; ``None`` if nothing was held out. Missing if the threshold was not chosen.
    _held_out: Mapping[str, NDArray[Any]] | None
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
        real = ~self._held_out["is_synthetic"]
        codes = {name: column[real] for name, column in self._held_out.items()}
        answers = self._possible_labels()  # type: ignore[attr-defined]
        return Result(
            is_open=codes["is_open"],
            label=answers[codes["classes"]],
            nearest_class=self.classes_[codes["nearest"]],
            score=codes["scores"],
            weight=codes["weights"],
            rank=codes["ranks"].astype(np.int64),
            gap=codes["gaps"],
        )

    def _keep_held_out(self, table: Any, scores: NDArray[np.float64]) -> None:
        """Keep a table of held-out samples, and their scores; which of them depend on each other, if any do."""
        self._held_out = {
            "scores": scores,
            "nearest": table.assigned.astype(np.int32),
            "classes": table.classes.astype(np.int32),
            "weights": table.weights,
            "is_open": table.is_open,
            "is_synthetic": table.is_synthetic,
            "ranks": table.ranks.astype(np.int8),
            "gaps": table.gaps,
            **({"sets": table.sets} if len(np.unique(table.known.sets)) < len(table.known) else {}),
        }


def held_out_rows(classifier: Any, caller: str) -> dict[str, Any]:
    """Labels, answers and scores of what a fitted classifier held out, as arguments of metrics and displays of scores.

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
