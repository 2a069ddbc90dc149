"""What the methods of ``skellipsoid_bench`` are built of; its version is pinned, so that all of it may change.

Methods of others are built of :class:`skellipsoid.ScoreOpenSetClassifier` (:ref:`own_method`).

- ``BoundaryOpenSetClassifier`` checks samples and labels, finds duplicates and answers by margins. A subclass writes
  ``_fit_boundaries``, which gets the ``TrainingSamples``, ``_score_assigned`` and ``_score_all``. ``open_label`` is −1
  and ``duplicates`` ``"once"``, unless its ``__init__`` takes them.
- ``TrainedTextFeatures`` is the base of text encoders that are trained. Its ``_settings``, a subclass of
  ``TrainingSettings``, names an ``Objective``: the loss of a ``Learner``'s texts, in one ``Stage`` or more.
- ``as_labels``, ``as_kind_of``, ``cast_open_label``, ``check_texts`` and ``check_groups`` read what
  ``fit`` is given. ``fit_context`` validates the parameters, and sets what a ``fit`` of your own stores at once, so
  that one that fails leaves what was there. ``unfit`` removes it, and ``warn`` points to the user's line.
- ``resolve_device`` and ``resolve_seed`` read ``device`` and ``random_state``. ``seeded_torch`` draws from torch's
  generator and restores it, ``explain_out_of_memory`` adds sizes and remedies to an error.
"""

from skellipsoid_runtime._containers import check_texts

from ._core.fitted_state import fit_context, unfit
from ._core.labels import as_kind_of, as_labels, cast_open_label
from ._core.open_set_classifier import BoundaryOpenSetClassifier
from ._core.validation import check_groups
from ._core.warn import warn
from ._encoders.torch.objectives import Learner, Objective, Stage, TrainingSettings
from ._encoders.trained_text_features import TrainedTextFeatures
from ._samples.training_samples import TrainingSamples
from ._torch.devices import explain_out_of_memory, resolve_device, resolve_seed, seeded_torch

__all__ = [
    "BoundaryOpenSetClassifier",
    "Learner",
    "Objective",
    "Stage",
    "TrainedTextFeatures",
    "TrainingSamples",
    "TrainingSettings",
    "as_kind_of",
    "as_labels",
    "cast_open_label",
    "check_groups",
    "check_texts",
    "explain_out_of_memory",
    "fit_context",
    "resolve_device",
    "resolve_seed",
    "seeded_torch",
    "unfit",
    "warn",
]
