"""What a saved classifier holds of its boundaries and its samples."""

from typing import Any

import numpy as np

from .._core.state_rules import (
    ASKING,
    CHANGES,
    CLASSIFIER,
    COUNT,
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
    is_number,
    measured,
    optional,
    or_none,
    refuse,
    rising,
)
from .._held_out.expected import Expected
from .._held_out.kept import Placed
from .._held_out.state import HELD_OUT
from .._samples.training_samples import TrainingSamples
from .changes.learned import Learned
from .math.boundaries import Boundaries, Chosen, Metric, Moments, Shapes, Shrinkage
from .math.geometry import Factors
from .math.memory import Memory


def _is_share(value: Any) -> bool:
    parts = value if isinstance(value, tuple) and len(value) == 2 else (value, value)
    return all(map(is_number, parts)) and 0 <= parts[0] <= parts[1] <= 1


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
_MEMORY = Record(
    Memory,
    nullable=True,
    required=False,
    opened=floats("n_remembered", "n_features"),
    known=floats("n_remembered_known", "n_features"),
    weight=NUMBER,
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
    sheets=optional(integers("n_learned", least=0)),
)
_EXPECTED = Record(
    Expected,
    otherwise=Expected.by,
    open_share=Rule("a proportion, or a tuple of two that rise", _is_share),
    known_shift=or_none(NUMBER),
    open_weight=Rule("a number of at least 0", lambda value: is_number(value) and value >= 0),
    projected=optional(or_none(Rule("the number of a projection", lambda value: value in (1, 2, 3, 4)))),
)
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
        units=optional(or_none(floats("n_features", above=0))),
        memory=_MEMORY,
    ),
    "_held_out": HELD_OUT,
    "_expected": _EXPECTED,
    "traffic_": TRAFFIC,
    "asking_": ASKING,
    "_taught": Record(Placed, nullable=True, required=False, offset=NUMBER, traffic=TRAFFIC, asking=ASKING),
    # With a trainer alone; without one also of models that earlier versions saved.
    "n_iter_": optional(COUNT),
    "loss_curve_": optional(NUMBERS),
    "validation_scores_": optional(or_none(NUMBERS)),
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
