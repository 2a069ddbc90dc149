"""Margins of samples, 1 − ‖A_k (z − m_k)‖ / Δ_k: in chunks, on a device, in the precision of the samples."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from .._torch.devices import resolve_device, row_chunks
from .._torch.threads import map_parts, n_parts, one_thread_each
from .math.boundaries import Boundaries

#: Margins of all classes or of the assigned one; the assigned class, or the first classes in their order, (n_samples, 1
#: or more); and of a tensor the norm of each sample.
Scored = tuple[NDArray[np.floating], NDArray[np.int64], NDArray[Any]]


def read_on_device(classifier: Any, X: Any) -> Tensor | None:
    """Return a tensor that is where the classifier scores, without a copy to the host; ``None`` for all other input.

    Its values are not checked: the norms that scoring returns say whether they are finite.
    """
    if not isinstance(X, Tensor):
        return None
    check_is_fitted(classifier)
    device = resolve_device(classifier.device, fallback=True)
    is_there = X.device.type == device.type and device.index in (None, X.device.index)
    is_table = X.layout == torch.strided and X.ndim == 2 and len(X) > 0 and X.shape[1] == classifier.n_features_in_
    if not (is_there and is_table and X.is_floating_point()):
        return None
    validate_data(classifier, X, reset=False, skip_check_array=True)  # warns of feature names
    features: Tensor = X.detach()
    return features if features.dtype == torch.float64 else features.float()


@one_thread_each()
def score(boundaries: Boundaries, X: NDArray[Any] | Tensor, device: torch.device, *, of_all: bool) -> Scored:
    """Score samples in chunks; all of a chunk is copied to the host at once.

    Parameters
    ----------
    boundaries : Boundaries
    X : ndarray or Tensor of shape (n_samples, n_features)
        A tensor must be on the device.
    device : torch.device
    of_all : bool
        Whether margins of all classes are wanted.
    """
    n_samples, dtype = len(X), f"f{X.dtype.itemsize}"
    n_classes = len(boundaries.centroids)
    margins = np.empty((n_samples, n_classes if of_all else 1), dtype)
    first = np.empty((n_samples, min(boundaries.n_nearest, n_classes) if of_all else 1), dtype=np.int64)
    norms = np.zeros(n_samples, dtype)
    with torch.inference_mode():
        ready = boundaries.ready(device, torch.float64 if X.dtype.itemsize == 8 else torch.float32)
        n_bytes = ready.scorer.bytes_per_sample(of_all=of_all)

        def score_chunk(chunk: slice) -> None:
            if isinstance(X, Tensor):
                given = X[chunk]
            else:  # torch warns of read-only memory, and joblib maps large arrays to such memory
                given = torch.from_numpy(np.require(X[chunk], requirements=["C", "A", "W"])).to(device)
            features = ready.standardize(given)
            if of_all:
                found, nearest, compared = ready.scorer.all(features)
                order = compared.argsort(dim=1, stable=True)
                columns = [nearest.gather(1, order).T.to(found.dtype), found.T]
            else:
                assigned, found = ready.scorer.assigned(features)
                scores = found if ready.memory is None else found - ready.lost(features)
                columns = [assigned.unsqueeze(0).to(scores.dtype), scores.unsqueeze(0)]  # exact up to 2 ** 24
            if isinstance(X, Tensor):
                columns.append(torch.linalg.vector_norm(given, dim=1).unsqueeze(0))
            packed = torch.cat(columns).cpu().numpy()
            first[chunk], margins[chunk] = packed[: first.shape[1]].T, packed[first.shape[1] :][: margins.shape[1]].T
            if isinstance(X, Tensor):
                norms[chunk] = packed[-1]

        n_elements = n_samples * n_bytes / 4
        map_parts(score_chunk, row_chunks(n_samples, n_bytes, device, n_parts=n_parts(n_elements)), n_elements, device)
    return margins, first, norms


@one_thread_each()
def deductions(boundaries: Boundaries, X: NDArray[Any]) -> NDArray[np.floating]:
    """Return what the score of each sample loses by the memory of labelled messages, (n_samples,)."""
    with torch.inference_mode():
        ready = boundaries.ready(torch.device("cpu"), torch.float64 if X.dtype.itemsize == 8 else torch.float32)
        parts = np.array_split(X, max(1, len(X) // 4096))
        found = [
            ready.lost(ready.standardize(torch.from_numpy(np.require(part, requirements=["C", "A", "W"]))))
            for part in parts
        ]
    return torch.cat(found).numpy()
