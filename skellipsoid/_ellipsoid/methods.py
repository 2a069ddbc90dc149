"""The two ways to fit ellipsoids to training samples: in closed form, or by the paper's training.

``method_of`` is the one place that chooses between them.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_memory, validate_data

from .._core.labels import as_kind_of, as_labels, positions
from .._core.spelling import refuse_other_spellings
from .._core.validation import check_squares, enumerated, naming_rows, read_features, select_rows
from .._core.warn import warn
from .._held_out.expected import Expected
from .._held_out.table import FEWEST_OF_CLASS
from .._samples.duplicates import find_duplicates
from .._samples.equal import equal_samples
from .._samples.projections import Projection
from .._samples.training_samples import TrainingSamples
from .._samples.units import column_units
from .._torch.devices import explain_out_of_memory, resolve_device, resolve_seed
from .._torch.progress import fit_progress
from .._torch.training_loop import History
from .._version import __version__
from .math.boundaries import Boundaries, Chosen, Fitted
from .math.closed_form import Prepared, finish, prepare
from .math.geometry import Spheres
from .math.projected import Fold, leave_out_folds, resized
from .paper.ellipsoids import Fixed, as_fitted, hold_out, hold_out_open, train_ellipsoids

#: Folders of this package whose code computes what is cached.
_SOURCES = ("_ellipsoid", "_held_out", "_samples", "_torch", "_traffic_model")
_PACKAGE = __package__.rpartition(".")[0]

Features = NDArray[np.float32]
Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Method(ABC):
    """Parameters of a classifier that a fit reads."""

    alpha: float
    beta: float
    expected: Expected
    trainer: Any
    random_state: Any
    duplicates: str
    device: torch.device
    memory: Any
    verbose: int | bool

    @abstractmethod
    def needs(self, n_classes: int, n_samples: int, n_features: int) -> str:
        """Say what takes the most memory."""

    @abstractmethod
    def least_bytes(self, samples: TrainingSamples, n_varying: int) -> float:
        """Count the bytes that are there at once, at least, for the features that vary."""

    def column_units(
        self, X: NDArray[Any], codes: Codes, weights: NDArray[np.float64], known: NDArray[np.int64]
    ) -> NDArray[np.float64] | None:
        """Return the units of the columns by the ``known`` samples; ``None``: as given."""
        return None

    def enough_memory(self, samples: TrainingSamples, n_classes: int) -> AbstractContextManager[None]:
        """Let a block that needs more memory than there is end in one sentence, or not begin."""
        X, is_on_cpu = samples.features, self.device.type == "cpu"
        least_bytes = self.least_bytes(samples, int((np.ptp(X, axis=0) > 0).sum())) if is_on_cpu else 0
        remedies = "reduce the number of features (PCA)" + ("" if is_on_cpu else " or use device='cpu'")
        return explain_out_of_memory(self.needs(n_classes, *X.shape), remedies, least_bytes)


class ClosedForm(Method):
    """Ellipsoids from covariances."""

    rescales = True

    def column_units(
        self, X: NDArray[Any], codes: Codes, weights: NDArray[np.float64], known: NDArray[np.int64]
    ) -> NDArray[np.float64] | None:
        """Return standard deviations within classes, where the columns do not share a unit.

        Copies count as they do in the fit.
        """
        features, codes, weights = select_rows(X, known), codes[known], weights[known]
        if self.duplicates == "off":
            return column_units(features, codes, weights)
        equal = equal_samples(features, codes)
        if self.duplicates == "once":
            weights = weights / np.bincount(equal)[equal]
        return column_units(features, codes, weights, int(equal.max(initial=-1)) + 1)

    def needs(self, n_classes: int, n_samples: int, n_features: int) -> str:
        """Say what takes the most memory."""
        return f"{n_samples} samples and the axes of {n_classes} classes, {n_features} numbers each"

    def least_bytes(self, samples: TrainingSamples, n_varying: int) -> float:
        """Count numbers of 8 bytes: samples, and axes of classes."""
        n_axes = int(np.minimum(np.bincount(samples.classes) - 1, n_varying).sum())
        return float(8 * n_varying * (len(samples) + n_axes))

    def with_validation(
        self, training: TrainingSamples, features: Features, codes: Codes, n_classes: int
    ) -> TrainingSamples:
        """Append validation samples, but for duplicates of training samples: they do not show how far out new ones lie.

        A code of ``n_classes`` is that of open samples.
        """
        known = codes < n_classes
        opened, features, codes = features[~known], features[known], codes[known]
        together, classes = np.concatenate([training.features, features]), np.concatenate([training.classes, codes])
        units = (equal_samples if self.duplicates == "off" else find_duplicates)(together, classes)
        own, units = units[: len(training)], units[len(training) :]
        is_copy = np.isin(units, own)
        if is_copy.any():
            warn(
                f"{is_copy.sum()} of {len(codes)} known samples of X_val are duplicates of training samples, which do "
                "not show how far out new samples lie; they are dropped. Pass samples that are not in X."
            )
        features, codes, units = features[~is_copy], codes[~is_copy], units[~is_copy]
        weights = 1 / np.bincount(units)[units] if self.duplicates == "once" else np.ones(len(units))
        return training.with_validation(features, codes, weights, units, opened)

    def fit(
        self,
        samples: TrainingSamples,
        classes: NDArray[Any],
        earlier: Boundaries | None = None,
        same: Mapping[int, int] = MappingProxyType({}),
        *,
        with_held_out: bool = True,
    ) -> tuple[Fitted, TrainingSamples]:
        """Fit to samples; after an earlier fit, with what that one chose, and without held-out scores on request."""
        chosen = None if earlier is None else earlier.chosen
        # After an earlier fit, nothing is drawn but which of very many samples are held out.
        seed = 0 if chosen else resolve_seed(self.random_state)
        cached = check_memory(None if chosen else self.memory).cache(_prepare_cached)
        projection = Projection((self.expected.projected or 0) if with_held_out else 0)
        made_by = _made_by()
        with fit_progress(self.verbose):
            prepared, folds = cached(
                samples, len(classes), str(self.device), seed, chosen, made_by, with_held_out, projection
            )
            fitted = finish(prepared, self.alpha, self.expected._replace(projected=None))
            if folds:
                fresh = prepared.fresh if isinstance(prepared, Prepared) else None
                fitted = resized(fitted, folds, self.alpha, self.expected, fresh)
        trains = samples.validates != 1
        warn_of_few(classes, samples.classes[trains], samples.groups[trains], fitted.degenerate)
        return fitted, samples


@cache
def _made_by() -> tuple[str, ...]:
    """Return the hash of the sources that compute what is cached, and versions: after a change nothing is found."""
    digest = sha256()
    for folder in _SOURCES:
        for name, content in _sources(files(f"{_PACKAGE}.{folder}"), folder):
            digest.update(f"{name}:{len(content)}:".encode() + content)
    return __version__, digest.hexdigest(), np.__version__, torch.__version__


def _sources(folder: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the modules in a folder of this package, which may be in an archive."""
    for each in sorted(folder.iterdir(), key=lambda each: each.name):
        if each.is_dir():
            yield from _sources(each, f"{name}/{each.name}")
        elif each.name.endswith(".py"):
            yield f"{name}/{each.name}", each.read_bytes()


def _prepare_cached(
    training: TrainingSamples,
    n_classes: int,
    device: str,
    seed: int,
    chosen: Chosen | None,
    made_by: tuple[str, ...],
    with_held_out: bool,
    projection: Projection,
) -> tuple[Prepared | Spheres, list[Fold]]:
    """Compute what does not depend on α and β, of arguments that have a hash; ``made_by`` is what computes it."""
    (samples, opened), fresh = training.as_tensors(n_classes, torch.device(device)), None
    if (training.validates == 1).any():
        validates = torch.from_numpy(training.validates == 1).to(device)
        samples, fresh = samples.where(~validates), samples.where(validates)
    prepared = prepare(samples, opened, seed, chosen, fresh, with_held_out)
    return prepared, leave_out_folds(samples, opened, seed, projection, chosen) if projection else []


class Training(Method):
    """The paper's training of matrices."""

    @property
    def rescales(self) -> bool:
        """Whether features are divided by their scale."""
        return bool(self.trainer.rescale)

    def needs(self, n_classes: int, n_samples: int, n_features: int) -> str:
        """Say what takes the most memory."""
        return f"{n_classes} classes × {n_features} × {n_features} matrices with Adam's two moments"

    def least_bytes(self, samples: TrainingSamples, n_varying: int) -> float:
        """Count matrices, gradients and moments in single precision, of all features."""
        n_classes, n_features = int(samples.classes.max()) + 1, samples.features.shape[1]
        return float(16 * n_classes * n_features**2)

    def with_validation(
        self, training: TrainingSamples, features: Features, codes: Codes, n_classes: int
    ) -> TrainingSamples:
        """Append validation samples, which decide when to stop. A code of ``n_classes`` is that of open samples."""
        known = codes < n_classes
        n_known = int(known.sum())
        units = np.arange(n_known)
        return training.with_validation(features[known], codes[known], np.ones(n_known), units, features[~known])

    def fit(
        self,
        given: TrainingSamples,
        classes: NDArray[Any],
        earlier: Boundaries | None = None,
        same: Mapping[int, int] = MappingProxyType({}),
        *,
        with_held_out: bool = True,
    ) -> tuple[Fitted, TrainingSamples]:
        """Train matrices; ``same`` classes, by their new and their old numbers, keep those of an ``earlier`` training.

        The samples that are given back say which of them were validation samples. Those are the held-out ones, so that
        there is nothing to leave out where nobody asks for held-out scores (``with_held_out``).
        """
        settings = self.trainer._settings(self.alpha, self.beta, len(classes))
        (samples, opened), seed = given.as_tensors(len(classes), self.device), resolve_seed(self.random_state)
        validates = hold_out(samples, given.validates, settings.validation_fraction, seed)
        open_validates = hold_out_open(given.open_validates, settings.validation_fraction, seed)
        known, real = (torch.from_numpy(mask).to(self.device) for mask in (validates, open_validates))
        training, validation = (samples.where(~known), opened[~real]), (samples.where(known), opened[real])
        fixed = None if earlier is None else self._fixed(earlier, same)
        learned = train_ellipsoids(*training, settings, seed, validation, fixed)
        warn_of_flat(learned.history, -(-len(training[0]) // settings.batch_size))
        fitted = as_fitted(learned)
        decided, open_decided = validates.astype(np.int8), open_validates.astype(np.int8)
        return fitted, replace(given, validates=decided, open_validates=open_decided)

    def _fixed(self, earlier: Boundaries, same: Mapping[int, int]) -> Fixed | None:
        """Return the trained matrices of some classes, under their new numbers; ``None`` after a closed form."""
        axes, n_features = earlier.shapes.factors.axes, len(earlier.mean)
        if earlier.shapes.metric.axes is not None or not len(axes):
            return None
        components = torch.from_numpy(axes).view(-1, n_features, n_features)[list(same.values())]
        numbers = torch.tensor(list(same), dtype=torch.int64, device=self.device)
        return Fixed(numbers, components.to(self.device))


def method_of(classifier: Any) -> ClosedForm | Training:
    """Choose the fit that the parameters of a classifier ask for."""
    method = ClosedForm if classifier.trainer is None else Training
    given = classifier.alpha, classifier.beta, Expected.of(classifier), classifier.trainer, classifier.random_state
    device = resolve_device(classifier.device)
    return method(*given, classifier.duplicates, device, classifier.memory, classifier.verbose)


def read_validation(classifier: Any, X: ArrayLike | None, y: ArrayLike | None) -> tuple[NDArray[Any], Codes] | None:
    """Validate the validation samples, and give the numbers of their classes; ``None`` without them."""
    if X is None and y is None:
        return None
    if X is None or y is None:
        given, missing = ("X_val", "y_val") if y is None else ("y_val", "X_val")
        raise ValueError(
            f"{given} is given without {missing}: pass the features and the labels of the validation samples."
        )
    X, y = read_features(X), as_labels(y, "y_val")
    with naming_rows(X):
        X = np.asarray(validate_data(classifier, X, dtype=(np.float64, np.float32), reset=False))
    if len(X) != len(y):
        raise ValueError(f"X_val has {len(X)} rows, but y_val has {len(y)} labels; pass one label for each row.")
    check_squares(X)
    labels = as_kind_of(y, classifier.classes_, "y_val", "y")
    refuse_other_spellings(labels, classifier.classes_, classifier.open_label_)
    return X, positions(labels, classifier.classes_)


def warn_of_flat(history: History, n_steps: int) -> None:
    """Warn of a training that moved no boundary over a validation sample; an epoch has ``n_steps``."""
    if history.is_flat:
        warn(
            f"The training ended after {history.n_iter} epochs ({history.n_iter * n_steps} steps) although its loss "
            "still fell and no epoch had a better validation score than the first, so that known samples may be "
            "rejected; raise max_iter or learning_rate of EliDecide, pass X_val, or use trainer=None.",
            ConvergenceWarning,
        )


def warn_of_few(
    classes: NDArray[Any], codes: NDArray[np.int64], groups: NDArray[np.int64], degenerate: NDArray[np.bool_]
) -> None:
    """Warn of classes whose boundaries are judged by too few held-out groups; those of one have other warnings."""
    counts = np.bincount(np.unique(np.stack([codes, groups]), axis=1)[0], minlength=len(classes))
    few = (counts > 1) & (counts < FEWEST_OF_CLASS) & ~degenerate
    if not few.any():
        return
    if 2 * few.sum() > len(few):
        result = "new samples may be rejected, and open samples accepted, much more often than held-out ones"
    else:
        result = "many of their new samples will be rejected"
    warn(
        f"{few.sum()} of {len(few)} classes have fewer than {FEWEST_OF_CLASS} different samples, or groups of "
        f"them ({enumerated(classes[few])}; the smallest has {counts[few].min()}). Too few held-out samples "
        f"judge their boundaries, so {result}; collect at least {FEWEST_OF_CLASS} of each class, or set the "
        "threshold on new samples."
    )
