"""Columns that show which transformer was fitted to these very samples: PCA and its kin, or word counts."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

#: Independent columns have correlations of mean square 1 / n_samples. Less than this proportion of it is rounding.
ROUNDING = 0.0025
#: Probability that columns which are independent look uncorrelated.
BY_CHANCE = 1e-4
#: Standard deviations of whitened columns differ by this proportion of the smallest at most.
EQUAL = 1e-2
#: Word counts have at least this number of columns, and most of them are 0 in all samples but this proportion.
FEWEST_WORDS, RARE = 50, 0.05
#: Columns that are looked at before all.
FIRST = 8


class Projection(IntEnum):
    """What the columns of samples show about the transformer before them."""

    NONE = 0
    CENTRED = 1  # PCA: the covariance is diagonal
    NOT_CENTRED = 2  # TruncatedSVD: the second moments are
    WHITENED = 3  # the covariance is the identity times a number: FastICA, PCA(whiten=True), a scaler behind a PCA
    VOCABULARY = 4  # word counts: a word that no sample has is no column


#: What to do where it costs accuracy.
REMEDY = (
    "pass the features before it, or put TunedOperatingPointCV around the Pipeline (Projections, on the page 'Your own "
    "features' of the guide)"
)


def describe(projection: Projection) -> str:
    """Say what shows."""
    if projection == Projection.WHITENED:
        return (
            "The columns of X are uncorrelated and have equal variances, as a whitened PCA or an ICA leaves the "
            "samples that it was fitted to, so that new open samples look much more known than held-out ones"
        )
    if projection == Projection.VOCABULARY:
        return (
            "Most columns of X are 0 in most samples, as word counts are, so that little is left of new open samples: "
            "what is in no training sample is in no column"
        )
    return (
        "The columns of X are uncorrelated, as PCA, TruncatedSVD or KernelPCA leaves the samples that it was fitted "
        "to, so that new open samples look more known than held-out ones"
    )


#: Whether who fits leaves samples and classes out of the projection, too, in this thread.
_IS_LEFT_OUT = ContextVar("projection_is_left_out", default=False)


@contextmanager
def projection_left_out(is_left_out: bool = True) -> Iterator[None]:
    """Let fits inside the block not allow for a projection: who calls refits it in each fold."""
    before = _IS_LEFT_OUT.set(is_left_out)
    try:
        yield
    finally:
        _IS_LEFT_OUT.reset(before)


def allows_for(projection: Projection) -> bool:
    """Whether a fit allows for what its features show."""
    return bool(projection) and not _IS_LEFT_OUT.get()


def find_projection(features: NDArray[np.floating], classes: NDArray[np.int64]) -> Projection:
    """Say what was fitted to all these samples, (n_samples, n_features), without their ``classes``, (n_samples,).

    Linear discriminant analysis is not to be taken for one: it gives a column less than there are classes, and whitens
    the samples of these, but for its own shrinkage.
    """
    if are_words(features):
        return Projection.VOCABULARY
    found = _find(features)
    if found and classes.any():
        if features.shape[1] == classes.max():
            return Projection.NONE
        means = np.stack([features[classes == number].mean(axis=0) for number in range(classes.max() + 1)])
        if _find(features - means[classes]) == Projection.WHITENED:
            return Projection.NONE
    return found


def are_words(features: NDArray[np.floating]) -> bool:
    """Whether columns look like word counts: none is negative, and most are 0 nearly everywhere."""
    if features.shape[1] < FEWEST_WORDS or not len(features) or features.min() < 0:
        return False
    frequencies = (features != 0).mean(axis=0)
    return bool(np.median(frequencies[frequencies > 0]) < RARE) if frequencies.any() else False


def _find(features: NDArray[np.floating]) -> Projection:
    varies = np.ptp(features, axis=0) > 0 if len(features) else np.zeros(features.shape[1], dtype=bool)
    if not 2 <= varies.sum() < len(features):
        return Projection.NONE
    first = features[:, np.flatnonzero(varies)[:FIRST]]
    for centred in (True, False):
        if _are_uncorrelated(first, centred) and _are_uncorrelated(values := features[:, varies], centred):
            deviations = values.std(axis=0, dtype=np.float64)
            if deviations.max() <= (1 + EQUAL) * deviations.min():
                return Projection.WHITENED
            return Projection.CENTRED if centred else Projection.NOT_CENTRED
    return Projection.NONE


def _are_uncorrelated(values: NDArray[np.floating], centred: bool) -> bool:
    """Whether columns are uncorrelated, or orthogonal where they are not ``centred``, but for rounding."""
    offsets = values.astype(np.float64)
    if centred:
        offsets -= offsets.mean(axis=0)
    offsets /= np.linalg.norm(offsets, axis=0)
    products, n_pairs = offsets.T @ offsets, values.shape[1] * (values.shape[1] - 1) / 2
    squares = (np.square(products).sum() - np.square(products.diagonal()).sum()) / 2
    return bool(len(values) * squares <= min(chi2.ppf(BY_CHANCE, n_pairs), ROUNDING * n_pairs))
