"""What a saved classifier holds of its boundaries and its samples, and what earlier versions called it."""

from typing import Any

import numpy as np

from .._core.state_rules import (
    ASKING,
    CHANGES,
    CLASSIFIER,
    COUNT,
    HELD_OUT,
    NUMBER,
    NUMBERS,
    POSITIVE,
    TRAFFIC,
    Record,
    Rule,
    Sizes,
    floats,
    integers,
    is_array,
    measured,
    or_none,
    refuse,
    rising,
)
from .._samples.training_samples import TrainingSamples
from .learned import Learned
from .math.boundaries import Boundaries, Chosen, Metric, Moments, Shapes, Shrinkage
from .math.geometry import Factors

_SHAPES = Record(
    Shapes,
    metric=Record(
        Metric,
        axes=or_none(floats("n_features", "n_metric")),
        products=or_none(floats("n_metric", "n_metric")),
        off_span=NUMBER,
        directions=floats("n_classes", "n_coordinates"),
        constants=floats("n_classes"),
    ),
    centres=floats("n_classes", "n_coordinates"),
    factors=Record(
        Factors,
        axes=floats("n_axes", "n_coordinates"),
        weights=floats("n_axes"),
        starts=rising("n_classes + 1", "n_axes"),
        residual=floats("n_classes"),
    ),
    radii=floats("n_classes", least=0),
    allowances=floats("n_classes"),
)
_MOMENTS = Record(
    Moments,
    nullable=True,
    counts=floats("n_classes"),
    freedoms=floats("n_classes"),
    scatters=floats("n_axes"),
    variances_of_means=floats("n_metric"),
    stretches=floats("n_metric"),
    variance_off_span=NUMBER,
)
_CHOSEN = Record(
    Chosen,
    nullable=True,
    shrinkage=Record(Shrinkage, spherical=or_none(NUMBER), between=or_none(NUMBER), shared=NUMBER),
    scale_of_large=NUMBER,
    mean_error=POSITIVE,
)
_KEPT = Record(
    TrainingSamples,
    nullable=True,
    mean=floats("n_features"),
    features=floats("n_kept", "n_features"),
    classes=integers("n_kept", below="n_classes"),
    weights=floats("n_kept", above=0),
    copies=integers("n_kept", least=1),
    units=integers("n_kept", least=0),
    groups=integers("n_kept", least=0),
    validates=integers("n_kept", least=-1, most=1),
    open_features=floats("n_open", "n_features"),
    open_validates=integers("n_open", least=-1, most=1),
)
_LEARNED = Record(
    Learned,
    nullable=True,
    features=floats("n_learned", "n_features"),
    labels=Rule("an array of labels", is_array("biufUTO"), ("n_learned",)),
    weights=floats("n_learned", least=0),
    scores=floats("n_learned"),
    right=Rule("an array of Booleans", is_array("b"), ("n_learned",)),
    gaps=measured("n_learned"),
)
#: Columns of ``_kept`` that had another name in earlier versions.
_EARLIER = {
    "rows": "features",
    "held": "validates",
    "open_rows": "open_features",
    "open_held": "open_validates",
}
#: Fitted attributes, and what each must be to be loaded.
STATE: dict[str, Rule | Record] = {
    **CLASSIFIER,
    "_boundaries": Record(
        Boundaries,
        mean=floats("n_features"),
        scale=POSITIVE,
        centroids=floats("n_classes", "n_features"),
        centres=floats("n_classes", "n_features"),
        shapes=_SHAPES,
        moments=_MOMENTS,
        chosen=_CHOSEN,
        n_nearest=COUNT,
    ),
    "_held_out": HELD_OUT,
    "traffic_": TRAFFIC,
    "asking_": ASKING,
    "n_iter_": COUNT,
    "loss_curve_": NUMBERS,
    "validation_scores_": or_none(NUMBERS),
    "changes_": CHANGES,
    "_kept": _KEPT,
    "_learned": _LEARNED,
}


def check(classifier: Any, sizes: Sizes) -> None:
    """Raise an error for what no rule of ``STATE`` says."""
    if classifier._kept is not None:
        sampled = np.isin(np.arange(sizes["n_classes"]), classifier._kept.classes)
        if classifier._learned is not None:
            sampled |= np.isin(classifier.classes_, classifier._learned.labels)
        refuse(not sampled.all(), "_kept must hold samples of each class")
    if (learned := classifier._learned) is not None:
        refuse(not len(learned) or classifier._kept is None, "_learned must be null where nothing was learned")
        are_texts = {isinstance(label, str) for label in learned.labels.tolist()}
        is_wrong = are_texts != {isinstance(classifier.open_label_, str)}
        refuse(is_wrong, "labels of _learned must be of the kind of classes_")
    boundaries: Boundaries = classifier._boundaries
    metric, wanted = boundaries.shapes.metric, sizes["n_features"]
    if metric.axes is not None:
        wanted = sizes["n_metric"] + (metric.products is not None)
        refuse(boundaries.moments is None or boundaries.chosen is None, "moments or chosen of _boundaries is missing")
    refuse(sizes["n_coordinates"] != wanted, f"_boundaries have {sizes['n_coordinates']} coordinates, not {wanted}")


def of_earlier_version(state: dict[str, Any]) -> dict[str, Any]:
    """Read state that was saved when columns of ``_kept`` had other names, or when each array was an attribute."""
    old = {"_learned": None, **state}  # since format 8
    old.pop("held_out_scores_", None)  # in ``_held_out``, too
    if isinstance(kept := old.get("_kept"), dict):
        old["_kept"] = {_EARLIER.get(name, name): column for name, column in kept.items()}
    if isinstance(learned := old.get("_learned"), dict) and isinstance(learned.get("weights"), np.ndarray):
        old["_learned"] = {"gaps": np.full(len(learned["weights"]), np.nan), **learned}  # since format 9
    if isinstance(boundaries := old.get("_boundaries"), dict):
        old["_boundaries"] = {"n_nearest": 1, **boundaries}  # since format 9, and the allowances
        if isinstance(shapes := boundaries.get("shapes"), dict) and isinstance(shapes.get("radii"), np.ndarray):
            old["_boundaries"]["shapes"] = {"allowances": np.zeros(len(shapes["radii"])), **shapes}
    if "_boundaries" in old or "_centers" not in old:
        return old

    def taken(*names: str) -> list[Any]:
        for name in names:
            refuse(name not in old, f"{name} is missing")
        return [old.pop(name) for name in names]

    shrinkage: Any = [old.pop("spherical_share_", None), old.pop("between_share_", None)]
    shrinkage.append(old.pop("shrinkage_", old.pop("shared_share_", None)))  # its name before
    mean, scale, centroids, centres, radii = taken("_mean", "scale_", "centroids_", "centers_", "radii_")
    metric = taken("_metric_axes", "_metric_products", "_off_span", "_label_directions", "_label_constants")
    shape_centres, axes, weights, starts, residual = taken(
        "_centers", "_axes", "_axis_weights", "_axis_starts", "_residual_weights"
    )
    factors = dict(zip(Factors.__dataclass_fields__, (axes, weights, starts.tolist(), residual), strict=True))
    moments: Any = ("_class_counts", "_class_freedoms", "_axis_scatters", "_between", "_stretches", "_off_variance")
    moments = dict(zip(Moments._fields, taken(*moments), strict=True)) if "_between" in old else None
    scale_of_large, error = old.pop("_radius_scale", None), old.pop("_mean_error", None)
    chosen = dict(
        zip(Chosen._fields, (dict(zip(Shrinkage._fields, shrinkage, strict=True)), scale_of_large, error), strict=True)
    )
    old["_boundaries"] = {
        "mean": mean,
        "scale": scale,
        "centroids": (centroids - mean) / scale,
        "centres": (centres - mean) / scale,
        "shapes": {
            "metric": dict(zip(Metric.__dataclass_fields__, metric, strict=True)),
            "centres": shape_centres,
            "factors": factors,
            "radii": radii / scale,
            "allowances": np.zeros(len(radii)),
        },
        "moments": moments,
        "chosen": None if shrinkage[2] is None else chosen,
        "n_nearest": 1,
    }
    return old
