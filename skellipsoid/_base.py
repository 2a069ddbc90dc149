"""Base classes and helpers of the methods in ``skellipsoid_bench``, which pins this version: all may change.

Your own method derives from :class:`skellipsoid.ScoreOpenSetClassifier` (:ref:`own_method`).

- ``BoundaryOpenSetClassifier`` checks samples and labels, finds duplicates and predicts by margins. A subclass
  implements ``_fit_boundaries``, which gets the ``TrainingSamples``, ``_score_assigned`` and ``_score_all``.
  ``open_label`` is −1 and ``duplicates`` ``"once"``, unless its ``__init__`` takes them.
- ``TrainedTextFeatures`` is the base of text encoders that are trained. Its ``_settings``, a subclass of
  ``TrainingSettings``, name an ``Objective``: the loss on the texts of a ``Learner``, in one ``Stage`` or more.
- ``as_labels``, ``as_kind_of``, ``cast_open_label``, ``check_texts`` and ``check_groups`` read what ``fit`` is given.
  ``fit_context`` validates the parameters of a ``fit``, and stores its attributes in one step, so that a fit that fails
  changes nothing. ``unfit`` removes fitted attributes, and ``warn`` points to the user's line.
- ``resolve_device`` and ``resolve_seed`` read ``device`` and ``random_state``. ``seeded_torch`` seeds torch's generator
  and restores it, ``explain_out_of_memory`` adds sizes and remedies to an error.
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
