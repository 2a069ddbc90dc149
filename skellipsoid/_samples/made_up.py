"""Samples that a sampler such as SMOTE made up: each lies exactly between two others."""

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from .samples import members_of

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

# Made-up samples, by hand: of SMOTE's samples nearly all lie on a line between two others, of real ones none.
FEWEST_FEATURES_OF_LINES, FEWEST_ON_LINES, MOST_OF_LINES = 4, 3, 24
SHARE_ON_LINES, LINE_TOLERANCE = 0.2, 1e-7
# Rounding of a feature in single precision, relative to its value, and how many times that two ends differ at least.
FEATURE_TOLERANCE, SMALLEST_STEP = 2e-6, 1000


def made_up_classes(features: NDArray[np.floating], classes: Integers) -> Integers:
    """Find classes with many samples exactly between two others, as SMOTE makes them.

    In each class the last samples are compared with the first: synthetic samples are usually appended. With fewer than
    four features samples lie on a line by chance.
    """
    found = []
    for own in members_of(classes) if features.shape[1] >= FEWEST_FEATURES_OF_LINES else ():
        half = min(MOST_OF_LINES, len(own) // 2)
        if half < FEWEST_ON_LINES:
            continue
        places = _places_on_lines(features[own[:half]].astype(np.float64), features[own[-half:]].astype(np.float64))
        n_inside = sum(map(bool, places))
        # On a grid they are half-way between two others, or a third of the way.
        if n_inside >= max(FEWEST_ON_LINES, SHARE_ON_LINES * half) and len(set().union(*places)) >= n_inside:
            found.append(classes[own[0]])
    return np.array(found, dtype=np.int64)


def _places_on_lines(ends: Floats, between: Floats) -> list[set[float]]:
    """Give the places, from 0 to 1, of each sample on those lines between two ends that it lies on in all features.

    Samples that lie on no line are not in the list.

    The detour over the sample chooses the lines to check. If one feature is much larger than the others, the detour is
    small everywhere. So each feature is compared by itself, and at least four have to differ between the ends.
    """
    scale = np.ptp(np.concatenate([ends, between]), axis=0)
    scale = np.where(scale > 0, scale, 1)
    lengths, parts = cdist(ends / scale, ends / scale), cdist(between / scale, ends / scale)
    detours = parts[:, :, np.newaxis] + parts[:, np.newaxis] - lengths
    are_inside = np.minimum(parts[:, :, np.newaxis], parts[:, np.newaxis]) > LINE_TOLERANCE * lengths
    on_line = np.triu((detours <= LINE_TOLERANCE * lengths) & are_inside)
    found: list[set[float]] = []
    for sample in np.flatnonzero(on_line.any(axis=(1, 2))):
        first, second = np.nonzero(on_line[sample])
        places = parts[sample, first] / lengths[first, second]
        steps = ends[second] - ends[first]
        off = np.abs(between[sample] - ends[first] - places[:, np.newaxis] * steps)
        rounding = FEATURE_TOLERANCE * (np.abs(steps) + np.maximum(np.abs(ends[first]), np.abs(ends[second])))
        tell_apart = np.abs(steps) > SMALLEST_STEP * rounding
        lines = np.flatnonzero((off <= rounding).all(axis=1) & (tell_apart.sum(axis=1) >= FEWEST_FEATURES_OF_LINES))
        fit = [line for line in lines if not _are_on_one_line(ends[:, tell_apart[line]] / scale[tell_apart[line]])]
        found.append(set(np.round(places[fit], 3).tolist()))
    return found


def _are_on_one_line(samples: Floats) -> bool:
    """Whether all samples lie on one line, as those of features that are multiples of each other."""
    sizes = np.linalg.svd(samples - samples.mean(axis=0), compute_uv=False)
    return bool(len(sizes) < 2 or sizes[1] <= FEATURE_TOLERANCE * sizes[0])
