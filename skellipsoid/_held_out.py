"""The held-out scores that a fit keeps: known samples, and samples of classes that were held out."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted


class KeepsHeldOut:
    """Mixin of a classifier whose fit scores samples that it holds out."""

    classes_: NDArray[Any]
    open_label_: Any
    #: Codes of classes and the scores; ``None`` if nothing was held out. Missing if the threshold was not chosen.
    _held_out: Mapping[str, NDArray[Any]] | None

    @property
    def held_out_(self) -> Bunch | None:
        """Scores of held-out samples, and of samples whose class was held out, which stand in for open ones.

        Arrays of shape (n_rows,), so that ``pandas.DataFrame(clf.held_out_)`` is a table; ``None`` if nothing was held
        out:

        - ``is_open``: false where the sample was scored by a fit without it, true where it was scored by a fit without
          its whole class. Training samples with the open label are open too.
        - ``label``: the sample's own label.
        - ``nearest_class``: the class that it was assigned to.
        - ``score``: its score, as ``score_samples`` gives it: ``predict`` rejects what is below ``offset_`` (plus the
          entry of ``class_offsets_`` for the nearest class).
        - ``weight``: its weight.
        """
        check_is_fitted(self)
        if "_held_out" not in vars(self):
            msg = f"{type(self).__name__} has no held_out_: its threshold was given, not chosen by held-out samples."
            raise AttributeError(msg)
        if self._held_out is None:
            return None
        codes, answers = self._held_out, self._possible_answers()  # type: ignore[attr-defined]
        return Bunch(
            is_open=codes["is_open"].copy(),
            label=answers[codes["classes"]],
            nearest_class=self.classes_[codes["nearest"]],
            score=codes["scores"].copy(),
            weight=codes["weights"].copy(),
        )

    def _keep_held_out(
        self,
        scores: NDArray[np.float64],
        nearest: NDArray[np.int64],
        classes: NDArray[np.int64],
        weights: NDArray[np.float64],
        is_open: NDArray[np.bool_],
    ) -> None:
        self._held_out = {
            "scores": scores,
            "nearest": nearest.astype(np.int32),
            "classes": classes.astype(np.int32),
            "weights": weights,
            "is_open": is_open,
        }
