"""Base class for a user's own method: it scores each class, and the package chooses the threshold."""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._samples.training_samples import TrainingSamples
from ._shared_docs import shared_docs
from ._threshold import Floats, Integers, Scored, ThresholdedClassifier


@shared_docs
@dataclass(kw_only=True, eq=False, repr=False)
class ScoreOpenSetClassifier(ThresholdedClassifier):
    """Base class of an open-set classifier by your own score.

    A subclass implements :meth:`fit_scores` and :meth:`class_scores`. A sample is assigned to the class with the
    highest score, and is open if this score is below ``threshold_``. The base class checks the data, finds duplicates,
    chooses the threshold, and implements all other methods of an open-set classifier.

    The parameters are those of the subclass's ``__init__``. It must have ``threshold``; if it lacks ``duplicates``,
    ``open_label`` or ``random_state``, these have their defaults. A subclass without an ``__init__`` has all four.
    ``fit_scores`` stores what it learns in attributes whose names end with an underscore; ``fit`` first deletes those
    of an earlier fit.

    Read more in the :ref:`User Guide <own_method>`.

    Parameters
    ----------
    threshold : {"auto", "quantile"} or float, default="auto"
        {chosen_threshold} A number is the smallest accepted score.

    {duplicates}

    open_label : int or str, default=-1
        The label of open samples, cast to the type of the classes: −1 for numbers, ``"-1"`` for strings.

    {random_state}

    Attributes
    ----------
    {classes threshold offset groups features}

    See Also
    --------
    skellipsoid_bench.run : Compares it with other methods.

    Examples
    --------
    >>> import numpy as np
    >>> from skellipsoid import ScoreOpenSetClassifier
    >>> class NearestMedian(ScoreOpenSetClassifier):
    ...     def __init__(self, *, threshold="auto"):
    ...         self.threshold = threshold
    ...     def fit_scores(self, X, classes, sample_weight):
    ...         self.medians_ = [np.median(X[classes == k], axis=0) for k in range(classes.max() + 1)]
    ...     def class_scores(self, X):
    ...         return -np.column_stack([abs(X - median).sum(axis=1) for median in self.medians_])
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(centre, 1, size=(50, 2)) for centre in (0, 10, 20)])
    >>> clf = NearestMedian().fit(X, np.repeat(["left", "middle", "right"], 50))
    >>> clf.predict([[0, 0], [20, 20], [0, 20]]).tolist()
    ['left', 'right', '-1']
    """

    threshold: str | float = "auto"

    @abstractmethod
    def fit_scores(self, X: Floats, classes: Integers, sample_weight: Floats) -> None:
        """Learn the scores. Called for all training samples, and for the folds that choose the threshold.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Known samples in double precision.
        classes : ndarray of shape (n_samples,)
            Class of each, 0 to n_classes − 1. Each class has at least one sample.
        sample_weight : ndarray of shape (n_samples,)
            Positive weights.
        """

    @abstractmethod
    def class_scores(self, X: Floats) -> Floats:
        """Score samples for each class.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)

        Returns
        -------
        scores : ndarray of shape (n_samples, n_classes)
            Higher is more known, comparable between classes. Never NaN.
        """

    def _fit_scores(self, samples: TrainingSamples) -> None:
        self.fit_scores(samples.features, samples.classes, samples.weights)

    def _score(self, X: Floats) -> Scored:
        by_class: NDArray[np.float64] = np.asarray(self.class_scores(X), dtype=np.float64)
        wanted = (len(X), len(self.classes_))
        if by_class.shape != wanted or np.isnan(by_class).any():
            found = "holds NaN" if by_class.shape == wanted else f"has the shape {by_class.shape}"
            raise ValueError(f"class_scores of {type(self).__name__} {found}; return numbers of the shape {wanted}.")
        assigned = by_class.argmax(axis=1)
        return Scored(assigned, by_class[np.arange(len(X)), assigned], by_class)
