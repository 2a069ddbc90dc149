"""The fitted ellipsoids as NumPy arrays: how they are stored, saved and scored."""

from collections.abc import Mapping
from threading import Lock
from typing import Any, ClassVar, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from .._core.base import Answers, BoundaryOpenSetClassifier
from .._core.held_out_scores import KeepsHeldOut
from .._core.state_rules import (
    CHANGES,
    CLASSIFIER,
    COUNT,
    HELD_OUT,
    KEPT,
    NUMBER,
    NUMBERS,
    POSITIVE,
    TRAFFIC,
    Rule,
    Sizes,
    check_kept,
    floats,
    integers,
    optional,
    or_none,
    refuse,
    require,
)
from .._torch.devices import resolve_device, row_chunks
from .._torch.threads import map_parts, n_parts, one_thread_each
from .math.boundaries import Boundaries, Chosen, Metric, Scorer, Shapes, Shrinkage
from .math.geometry import Factors

#: Only of the closed form. ``_radius_scale`` and ``_mean_error`` are ``Chosen.scale_of_large`` and ``Chosen.error``.
_MOMENTS = {
    "_class_counts": optional(floats("n_classes")),
    "_class_freedoms": optional(floats("n_classes")),
    "_axis_scatters": optional(floats("n_axes")),
    "_between": optional(floats("n_metric")),
    "_stretches": optional(floats("n_metric")),
    "_off_variance": optional(NUMBER),
    "_radius_scale": optional(NUMBER),
    "_mean_error": optional(POSITIVE),
}


class _Prepared(NamedTuple):
    """A fitted classifier on a device, in one precision."""

    arrays: tuple[Any, ...]  # that the tensors were made of
    values: NDArray[np.float64]  # radii, scale, and factor off the span
    scorer: Scorer
    mean: Tensor  # (n_features,)
    rest: Tensor | None  # (n_features,) what the mean loses in single precision
    scale: float

    def is_of(self, arrays: tuple[Any, ...], values: NDArray[np.float64]) -> bool:
        """Whether the tensors were made of these arrays."""
        same = all(mine is given for mine, given in zip(self.arrays, arrays, strict=True))
        return same and np.array_equal(self.values, values)

    def standardize(self, rows: Tensor) -> Tensor:
        """Subtract the mean, and divide by the scale, as in double precision: a large shift costs nothing."""
        offsets = rows - self.mean
        return (offsets if self.rest is None else offsets.sub_(self.rest)).div_(self.scale)


#: Arrays that scoring reads; a fit replaces all of them.
_SCORED = (
    "_metric_axes",
    "_metric_products",
    "_label_directions",
    "_label_constants",
    "_axes",
    "_axis_weights",
    "_axis_starts",
    "_residual_weights",
    "_centers",
    "_mean",
)
#: Not in the estimators, whose state is NumPy only: copies, pickles and saved models have no tensors.
_PREPARED: WeakKeyDictionary[Any, dict[tuple[torch.device, torch.dtype], _Prepared]] = WeakKeyDictionary()
_LOCK = Lock()


def forget_tensors(classifier: Any) -> None:
    """Free the tensors of an earlier fit."""
    with _LOCK:
        _PREPARED.pop(classifier, None)


class StoredShapes(KeepsHeldOut, BoundaryOpenSetClassifier):
    """Base of the ellipsoid classifier: everything that a fit stores of its boundaries."""

    classes_: NDArray[Any]
    scale_: float
    _mean: NDArray[np.float64]
    _kept: Mapping[str, NDArray[Any]] | None
    device: str | torch.device
    #: Fitted attributes, and what each must be to be loaded.
    _state: ClassVar[dict[str, Rule]] = {
        **CLASSIFIER,
        "scale_": POSITIVE,
        "_mean": floats("n_features"),
        "centroids_": floats("n_classes", "n_features"),
        "centers_": floats("n_classes", "n_features"),
        "radii_": floats("n_classes", least=0),
        "_centers": floats("n_classes", "n_coordinates"),
        "_metric_axes": or_none(floats("n_features", "n_metric")),
        "_metric_products": or_none(floats("n_metric", "n_metric")),
        "_off_span": NUMBER,
        "_label_directions": floats("n_classes", "n_coordinates"),
        "_label_constants": floats("n_classes"),
        "_axes": floats("n_axes", "n_coordinates"),
        "_axis_weights": floats("n_axes"),
        "_axis_starts": integers("n_classes + 1", rises_to="n_axes"),
        "_residual_weights": floats("n_classes"),
        "spherical_share_": or_none(NUMBER),
        "between_share_": or_none(NUMBER),
        "shared_share_": or_none(NUMBER),
        "held_out_scores_": or_none(floats("n_held_out")),
        "_held_out": HELD_OUT,
        "traffic_": TRAFFIC,
        "n_iter_": COUNT,
        "loss_curve_": NUMBERS,
        "validation_scores_": or_none(NUMBERS),
        "changes_": CHANGES,
        "_kept": KEPT,
        **_MOMENTS,
    }
    #: Names that earlier versions saved.
    _renamed_state: ClassVar[dict[str, str]] = {"shrinkage_": "shared_share_"}

    def _check_state(self, sizes: Sizes) -> None:
        """Raise an error for what no rule of ``_state`` says."""
        if self.held_out_scores_ is not None:
            refuse((np.diff(self.held_out_scores_) < 0).any(), "held_out_scores_ must be in ascending order")
        check_kept(self._kept, sizes)
        wanted, found = sizes["n_features"], sizes["n_coordinates"]
        if self._metric_axes is not None:
            wanted = sizes["n_metric"] + (self._metric_products is not None)
            require(self, *sorted(_MOMENTS), "shared_share_")
        refuse(found != wanted, f"_centers has {found} coordinates, but must have {wanted}")

    def _store(self, fitted: Boundaries) -> None:
        """Store the fitted boundaries as NumPy arrays: public ones in the units of X, others in those of ``scale_``."""
        forget_tensors(self)
        shapes, factors = fitted.shapes, fitted.shapes.factors
        self._mean = self._mean + self.scale_ * _array(fitted.origin)
        self.centroids_ = self._mean + self.scale_ * _array(fitted.centroids)
        self.centers_ = self._mean + self.scale_ * _array(fitted.centres)
        self.radii_ = self.scale_ * _array(shapes.radii)
        self._centers = _array(shapes.centres)
        metric = shapes.metric
        self._metric_axes = None if metric.axes is None else _array(metric.axes, np.float32)
        self._metric_products = None if metric.products is None else _array(metric.products)
        self._off_span = metric.off_span
        self._label_directions, self._label_constants = _array(metric.directions), _array(metric.constants)
        self._axes = _array(factors.axes, np.float32)
        self._axis_weights, self._axis_starts = _array(factors.weights), np.array(factors.starts)
        self._residual_weights = _array(factors.residual)
        self.spherical_share_: float | None = None
        self.between_share_: float | None = None
        self.shared_share_: float | None = None
        if (moments := fitted.moments) and (chosen := fitted.chosen):  # of the closed form
            self.spherical_share_, self.between_share_, self.shared_share_ = chosen.shrinkage
            self._radius_scale, self._mean_error = chosen.scale_of_large, chosen.error
            self._class_counts, self._class_freedoms = _array(moments.counts), _array(moments.freedoms)
            self._axis_scatters, self._between = _array(moments.scatters), _array(moments.variances_of_means)
            self._stretches, self._off_variance = _array(moments.stretches), moments.variance_off_span
        self._held_out = self.held_out_scores_ = None
        if (held_out := fitted.held_out) is not None:
            self._keep_held_out(held_out, held_out.margins)
            self.held_out_scores_ = np.sort(held_out.margins[~held_out.is_open])
        self.n_iter_ = max(1, len(fitted.losses))
        self.loss_curve_ = fitted.losses
        self.validation_scores_ = fitted.scores or None

    def _chosen(self) -> Chosen | None:
        """Shares, radius scale and e of the fit; ``None`` if no class has a spread, so that nothing was chosen."""
        if self.spherical_share_ is None or self.shared_share_ is None:
            return None
        shrinkage = Shrinkage(self.spherical_share_, self.between_share_, self.shared_share_)
        return Chosen(shrinkage, self._radius_scale, self._mean_error)

    def _standardize(self, X: NDArray[Any], dtype: Any) -> Tensor:
        return torch.from_numpy(((X - self._mean) / self.scale_).astype(dtype, copy=False))

    def _score_assigned(self, X: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.floating]]:
        margins, assigned, _ = self._scored(X, of_all=False)
        return assigned, margins[:, 0]

    def _score_all(self, X: NDArray[Any]) -> NDArray[np.floating]:
        return self._scored(X, of_all=True)[0]

    def _score_checked(self, X: ArrayLike, *, with_norms: bool = False) -> Answers:
        if (rows := self._read_on_device(X)) is not None:
            margins, assigned, norms = self._scored(rows, of_all=False)
            if np.isfinite(norms).all():
                return Answers(assigned, margins[:, 0], norms)
        return super()._score_checked(X, with_norms=with_norms)

    def _score_all_checked(self, X: ArrayLike) -> NDArray[np.floating]:
        return self._decide(X)[0]

    def _decide(self, X: ArrayLike) -> tuple[NDArray[np.floating], NDArray[np.int64]]:
        if (rows := self._read_on_device(X)) is not None:
            margins, assigned, norms = self._scored(rows, of_all=True)
            if np.isfinite(norms).all():
                return margins, assigned
        return self._scored(self._validate_scored_data(X), of_all=True)[:2]

    def _read_on_device(self, X: Any) -> Tensor | None:
        """Give a tensor that is where the classifier scores, without a copy to the host; ``None`` for all other input.

        Its values are not checked: the norms that scoring returns say whether they are finite.
        """
        if not isinstance(X, Tensor):
            return None
        check_is_fitted(self)
        device = resolve_device(self.device, fallback=True)
        is_there = X.device.type == device.type and device.index in (None, X.device.index)
        is_table = X.layout == torch.strided and X.ndim == 2 and len(X) > 0 and X.shape[1] == self.n_features_in_
        if not (is_there and is_table and X.is_floating_point()):
            return None
        validate_data(self, X, reset=False, skip_check_array=True)  # warns of feature names
        rows: Tensor = X.detach()
        return rows if rows.dtype == torch.float64 else rows.float()

    @one_thread_each()
    def _scored(
        self, X: NDArray[Any] | Tensor, *, of_all: bool
    ) -> tuple[NDArray[np.floating], NDArray[np.int64], NDArray[Any]]:
        """Margins of all classes or of the assigned one, the assigned class, and of a tensor the norm of each sample.

        Samples are scored in chunks, in the precision of X, and all of a chunk is copied to the host at once.
        """
        n_rows, dtype = len(X), f"f{X.dtype.itemsize}"
        margins = np.empty((n_rows, len(self.classes_) if of_all else 1), dtype)
        assigned, norms = np.empty(n_rows, dtype=np.int64), np.zeros(n_rows, dtype)
        device = X.device if isinstance(X, Tensor) else resolve_device(self.device, fallback=True)
        with torch.inference_mode():
            ready = self._prepared(device, torch.float64 if X.dtype.itemsize == 8 else torch.float32)
            n_bytes = ready.scorer.bytes_per_row(of_all=of_all)

            def score(chunk: slice) -> None:
                if isinstance(X, Tensor):
                    given = X[chunk]
                else:  # torch warns of read-only memory, and joblib maps large arrays to such memory
                    given = torch.from_numpy(np.require(X[chunk], requirements=["C", "A", "W"])).to(device)
                rows = ready.standardize(given)
                labels, found = ready.scorer.all(rows) if of_all else ready.scorer.assigned(rows)
                # Classes are exact up to 2 ** 24.
                columns = [labels.to(found.dtype).unsqueeze(0), found.T if of_all else found.unsqueeze(0)]
                if isinstance(X, Tensor):
                    columns.append(torch.linalg.vector_norm(given, dim=1).unsqueeze(0))
                packed = torch.cat(columns).cpu().numpy()
                assigned[chunk], margins[chunk] = packed[0], packed[1 : 1 + margins.shape[1]].T
                if isinstance(X, Tensor):
                    norms[chunk] = packed[-1]

            n_elements = n_rows * n_bytes / 4
            map_parts(score, row_chunks(n_rows, n_bytes, device, n_parts=n_parts(n_elements)), n_elements, device)
        return margins, assigned, norms

    def _prepared(self, device: torch.device, dtype: torch.dtype) -> _Prepared:
        """Tensors of the fitted arrays, made once for each device and type.

        They are made anew if an array was replaced, and if the radii or the scale have other values. Other arrays are
        not public; what changes their values in place must replace them.
        """
        arrays = tuple(getattr(self, name) for name in _SCORED)
        values = np.append(self.radii_, [self.scale_, self._off_span])
        with _LOCK:
            of_self = _PREPARED.setdefault(self, {})
            ready = of_self.get((device, dtype))
        if ready is None or not ready.is_of(arrays, values):
            ready = self._prepare(arrays, values, device, dtype)
            with _LOCK:
                of_self[device, dtype] = ready
        return ready

    def _prepare(
        self, arrays: tuple[Any, ...], values: NDArray[np.float64], device: torch.device, dtype: torch.dtype
    ) -> _Prepared:
        def on_device(given: NDArray[Any] | None) -> Any:
            if given is None:
                return None
            return torch.from_numpy(np.require(given, requirements="W")).to(device=device, dtype=dtype)

        metric = Metric(
            on_device(self._metric_axes),
            on_device(self._metric_products),
            self._off_span,
            on_device(self._label_directions),
            on_device(self._label_constants),
        )
        factors = Factors(
            on_device(self._axes),
            on_device(self._axis_weights),
            self._axis_starts.tolist(),
            on_device(self._residual_weights),
        )
        shapes = Shapes(metric, on_device(self._centers), factors, on_device(self.radii_ / self.scale_))
        mean = on_device(self._mean)
        rest = None if dtype == torch.float64 else on_device(self._mean - mean.cpu().numpy())
        return _Prepared(arrays, values, shapes.scorer(), mean, rest, self.scale_)


def _array(values: Tensor, dtype: Any = np.float64) -> NDArray[Any]:
    return values.cpu().numpy().astype(dtype)
