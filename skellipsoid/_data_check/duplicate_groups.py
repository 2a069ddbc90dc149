"""``find_duplicates``: duplicate samples, as groups for any splitter and classifier."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array, check_consistent_length

from .._core.labels import as_labels
from .._core.validation import check_squares, naming_rows, read_features
from .._samples import duplicates


def find_duplicates(X: ArrayLike, y: ArrayLike | None = None) -> NDArray[np.int64]:
    """Give duplicates the same number: equal samples, and samples that lie improbably near each other.

    They are what a classifier of this package finds when it is fitted, with ``duplicates="once"``. The numbers are
    groups for any other estimator, and for the splitters of scikit-learn: a test sample then has no copy in training.
    Read more in the :ref:`User Guide <repeated>`.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Features, such as embeddings, of any container that ``EllipsoidOpenSetClassifier.fit`` takes.
    y : array-like of shape (n_samples,), default=None
        Labels: only samples of one label are duplicates, as in a fit. ``None``: of any label.

    Returns
    -------
    groups : ndarray of shape (n_samples,)
        Numbers from 0, in the order of their first sample; without duplicates 0 … n_samples − 1.

    Raises
    ------
    ValueError
        If ``X`` is sparse, empty, not finite, masked, or holds dates, strings or values whose squares overflow, if
        labels are missing or mix numbers and strings, or if the lengths differ.

    See Also
    --------
    check_training_features : Names them in sentences, beside other possible errors.

    Notes
    -----
    In d dimensions the proportion (h / r)^d of the neighbours within a radius r lies within h. The 8th and the 16th
    neighbour of a sample give the local d and r [1]_, and so the probability of a neighbour as near as the nearest.
    Samples are linked at a false discovery rate of 5 % [2]_. A single feature, rounded or binary columns, and fewer
    than nine distinct samples of a label say little: then only clear duplicates are found, or none.

    References
    ----------
    .. [1] Levina, E., Bickel, P. J. "Maximum Likelihood Estimation of Intrinsic Dimension." NIPS 2004.
    .. [2] Benjamini, Y., Hochberg, Y. "Controlling the False Discovery Rate." J. R. Stat. Soc. B 57, 1995.

    Examples
    --------
    >>> import numpy as np
    >>> from skellipsoid import find_duplicates
    >>> X = np.random.default_rng(0).normal(size=(100, 8))
    >>> X[4], X[5] = X[0], X[1] + 0.001
    >>> find_duplicates(X)[:8].tolist()
    [0, 1, 2, 3, 0, 1, 4, 5]
    """
    features = read_features(X)
    with naming_rows(features):
        checked = check_array(features, dtype=(np.float64, np.float32), input_name="X")
    check_squares(checked)
    if y is None:
        return duplicates.find_duplicates(checked, np.zeros(len(checked), dtype=np.int64))
    labels = as_labels(y)
    check_consistent_length(checked, labels)
    return duplicates.find_duplicates(checked, np.unique(labels, return_inverse=True)[1].astype(np.int64))
