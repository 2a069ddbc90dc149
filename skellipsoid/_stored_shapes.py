"""The fitted ellipsoids as NumPy arrays: how they are stored, saved and scored."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ._engine.boundary.boundaries import Boundaries, Chosen, Metric, Shapes, ShapeWeights
from ._engine.boundary.geometry import Factors, scoring_chunks
from ._engine.common.devices import resolve_device
from ._held_out import KeepsHeldOut
from ._state_rules import (
    CHANGES,
    CLASSIFIER,
    COUNT,
    HELD_OUT,
    KEPT,
    NUMBER,
    NUMBERS,
    POSITIVE,
    Rule,
    Sizes,
    check_kept,
    floats,
    integers,
    optional,
    or_none,
)

#: Only of the closed form. ``_radius_scale`` and ``_mean_error`` are ``Chosen.scale`` and ``Chosen.error``.
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


class StoredShapes(KeepsHeldOut):
    """Mixin of the ellipsoid classifier: everything that a fit stores of its boundaries."""

    classes_: NDArray[Any]
    centroids_: NDArray[np.float64]
    centers_: NDArray[np.float64]
    radii_: NDArray[np.float64]
    scale_: float
    shrinkage_: float | None
    _mean: NDArray[np.float64]
    _centers: NDArray[np.float64]
    _axes: NDArray[np.float32]
    _axis_weights: NDArray[np.float64]
    _axis_starts: NDArray[np.int64]
    _residual_weights: NDArray[np.float64]
    _metric_axes: NDArray[np.float32] | None
    _off_span: float
    _stretches: NDArray[np.float64]
    _between: NDArray[np.float64]
    _off_variance: float
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
        "shrinkage_": or_none(NUMBER),
        "held_out_scores_": or_none(floats("n_held_out")),
        "_held_out": HELD_OUT,
        "n_iter_": COUNT,
        "loss_curve_": NUMBERS,
        "validation_scores_": or_none(NUMBERS),
        "changes_": CHANGES,
        "_kept": KEPT,
        **_MOMENTS,
    }

    def _check_state(self, sizes: Sizes) -> None:
        """Raise an error for what no rule of ``_state`` says."""
        if self.held_out_scores_ is not None and (np.diff(self.held_out_scores_) < 0).any():
            msg = "held_out_scores_ must be in ascending order"
            raise ValueError(msg)
        check_kept(self._kept, sizes)
        n_coordinates = sizes["n_features"]
        if self._metric_axes is not None:
            n_coordinates = sizes["n_metric"] + (self._metric_products is not None)
            missing = sorted(name for name in _MOMENTS if not hasattr(self, name))
            if missing or self.shrinkage_ is None:
                msg = f"{(missing or ['shrinkage_'])[0]} is missing"
                raise ValueError(msg)
        if n_coordinates != sizes["n_coordinates"]:
            msg = f"_centers has {sizes['n_coordinates']} coordinates, but must have {n_coordinates}"
            raise ValueError(msg)

    def _store(self, fitted: Boundaries) -> None:
        """Store the fitted boundaries as NumPy arrays: public ones in the units of X, others in those of ``scale_``."""
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
        moments = fitted.moments
        self.spherical_share_: float | None = None
        self.between_share_: float | None = None
        self.shrinkage_: float | None = None
        if moments:
            self.spherical_share_, self.between_share_, self.shrinkage_ = moments.weights
            self._class_counts, self._class_freedoms = _array(moments.counts), _array(moments.freedoms)
            self._axis_scatters, self._between = _array(moments.scatters), _array(moments.between)
            self._stretches, self._off_variance = _array(moments.stretches), moments.variance_off_span
        if fitted.chosen:
            self._radius_scale, self._mean_error = fitted.chosen.scale, fitted.chosen.error
        self._held_out = self.held_out_scores_ = None
        if (left := fitted.held_out) is not None:
            columns = left.assigned, left.classes, left.weights, left.is_open, left.is_synthetic
            self._keep_held_out(left.margins, *columns)
            self.held_out_scores_ = np.sort(left.margins[~left.is_open])
        self.n_iter_ = max(1, len(fitted.losses))
        self.loss_curve_ = fitted.losses
        self.validation_scores_ = fitted.scores or None

    def _chosen(self) -> Chosen | None:
        """Shares and size of the fit; ``None`` if no class has a spread, so that nothing was chosen."""
        if self.spherical_share_ is None or self.shrinkage_ is None:
            return None
        shares = ShapeWeights(self.spherical_share_, self.between_share_, self.shrinkage_)
        return Chosen(shares, self._radius_scale, self._mean_error)

    def _standardize(self, X: NDArray[Any], dtype: Any) -> Tensor:
        return torch.from_numpy(((X - self._mean) / self.scale_).astype(dtype, copy=False))

    def _score_assigned(self, X: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.floating]]:
        assigned = np.empty(len(X), dtype=np.int64)
        margins = np.empty(len(X), dtype=X.dtype)
        for chunk, (found, margin) in self._in_chunks(X, Shapes.assigned):
            assigned[chunk], margins[chunk] = found.cpu().numpy(), margin.cpu().numpy()
        return assigned, margins

    def _score_all(self, X: NDArray[Any]) -> NDArray[np.floating]:
        margins = np.empty((len(X), len(self.classes_)), dtype=X.dtype)
        for chunk, margin in self._in_chunks(X, Shapes.all):
            margins[chunk] = margin.cpu().numpy()
        return margins

    def _in_chunks(self, X: NDArray[Any], score: Callable[[Shapes, Tensor], Any]) -> Iterator[tuple[slice, Any]]:
        """Score samples in chunks, in the precision of X."""
        device = resolve_device(self.device, fallback=True)

        def on_device(values: NDArray[Any]) -> Tensor:
            # torch warns of read-only memory, and joblib maps large arrays to such memory.
            return torch.from_numpy(np.require(values.astype(X.dtype, copy=False), requirements="W")).to(device)

        def optional(values: NDArray[Any] | None) -> Tensor | None:
            return None if values is None else on_device(values)

        shapes = Shapes(
            Metric(
                optional(self._metric_axes),
                optional(self._metric_products),
                self._off_span,
                on_device(self._label_directions),
                on_device(self._label_constants),
            ),
            on_device(self._centers),
            Factors(
                on_device(self._axes),
                on_device(self._axis_weights),
                self._axis_starts.tolist(),
                on_device(self._residual_weights),
            ),
            on_device(self.radii_ / self.scale_),
        )
        with torch.inference_mode():
            for chunk in scoring_chunks(len(X), X.shape[1], len(self.classes_)):
                yield chunk, score(shapes, self._standardize(X[chunk], X.dtype).to(device))


def _array(values: Tensor, dtype: Any = np.float64) -> NDArray[Any]:
    return values.cpu().numpy().astype(dtype)
