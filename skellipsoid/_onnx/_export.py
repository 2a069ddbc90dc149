"""Write a fitted classifier or Pipeline as one ONNX graph, completely or not at all."""

import importlib.util
import json
import logging
import shutil
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn
from torch.nn import functional

from .._engine.common.devices import PROCESS_STATE
from .._engine.common.progress import quiet_libraries
from .._engine.text.backbone import ACTIVATIONS, TextBackbone
from .._engine.text.stored_text_model import TOKENIZER
from .._pipelines import split_estimator
from .._text_features import TextFeatures
from .._version import __version__
from ..persistence._folder import Files, manifest_bytes, sha256, to_disk, write_files
from ..persistence._save import _explained_failure
from ._heads import CLASSIFIERS, STEPS, Head, Step, head_of, step_of

#: The names that skellipsoid_runtime reads; a test compares both.
MANIFEST = "skellipsoid_onnx.json"
FORMAT, FORMAT_VERSION = "skellipsoid-onnx", 1
GRAPH, TRAINING_FEATURES = "model.onnx", "training_features.npy"
#: Text models that were compared at many batch sizes and lengths.
TEXT_MODELS = ("BertModel", "DistilBertModel", "MPNetModel", "RobertaModel")
#: Memory of the head for the rows of one run of the graph.
_HEAD_BYTES = 2**26
#: Of a graph in one file.
_MOST_BYTES = 2**31 - 2**20
_OPSET = 18
_OUTPUTS = ("label", "nearest_class", "score", "margins", "features")
#: Texts that the graph must answer as the package does before it is written.
_PROBES = ["one two", "", "a longer text of eight words or so", "\U0001f600"]
#: Difference between scores of the graph and of the package.
_TOLERANCE = 1e-3


class _Parts(NamedTuple):
    """What an estimator that can be exported consists of."""

    encoder: TextFeatures | None
    steps: list[Any]
    classifier: Any


def export_onnx(estimator: Any, folder: str | Path, *, quantize: bool = False) -> None:
    """Write a fitted classifier or text Pipeline as one ONNX graph, for machines without torch.

    The graph takes token ids and their mask (or features) and gives, for each sample, the number of the answer, the
    nearest class, the score, the margins of all classes, and the features that the classifier sees. The package
    ``skellipsoid-runtime`` answers with the folder; it needs NumPy, onnxruntime and tokenizers alone.

    Parameters
    ----------
    estimator : classifier or Pipeline
        Fitted: an :class:`EllipsoidOpenSetClassifier`, with or without a trainer, or a classifier of
        :mod:`skellipsoid.baselines` with a closed form (not those that look at neighbours); or a Pipeline of a text
        encoder of this package whose text model is a BERT, DistilBERT, MPNet or RoBERTa, scikit-learn's
        ``StandardScaler``, ``Normalizer``, ``PCA`` or ``TruncatedSVD``, and such a classifier. Of a fitted search or
        :class:`TunedOperatingPointCV` the fitted estimator inside is exported. The operating point is part of the graph.
    folder : str or Path
        A new or empty folder. It is complete or not there at all.
    quantize : bool, default=False
        Whether the text model computes with 8-bit integers.

    Raises
    ------
    TypeError
        If the estimator, a step or the text model cannot be exported. Then nothing is written.
    ImportError
        If the packages of the extra ``[onnx]`` are not installed.
    FileExistsError
        If the folder is not empty.
    OSError
        If the folder cannot be written.
    sklearn.exceptions.NotFittedError
        If the estimator is not fitted.

    See Also
    --------
    save : Keep a model for this package, with its parameters.

    Notes
    -----
    The answers are those of the estimator wherever its score is not within 0.0001 of the limit: a graph rounds
    otherwise. A classifier alone computes in double precision, so that features far from 0 lose nothing. The warning
    of samples whose norms are unlike those in training is not part of the graph.

    Examples
    --------
    >>> import tempfile, numpy as np, skellipsoid
    >>> X, y = np.array([[0.0], [1.0], [9.0], [10.0]] * 5), [0, 0, 1, 1] * 5
    >>> clf = skellipsoid.EllipsoidOpenSetClassifier(random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as parent:  # doctest: +SKIP
    ...     skellipsoid.export_onnx(clf, parent + "/model")
    ...     OnnxPipeline(parent + "/model").predict([[0.5], [500.0]]).tolist()
    [0, -1]
    """
    parts = _checked(estimator)
    target = Path(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        msg = f"{str(target)!r} exists and is not an empty folder; export into a new folder."
        raise FileExistsError(msg)
    _check_packages()
    files, manifest = _described(parts)
    manifest["sha256"] = {name: sha256(content) for name, content in files.items()}
    files[MANIFEST] = manifest_bytes(manifest)
    _write(target, files)


def _check_packages() -> None:
    for name in ("onnx", "onnxscript", "onnxruntime"):
        if importlib.util.find_spec(name) is None:
            msg = f"export_onnx needs the package {name}, which is not installed: pip install 'skellipsoid[onnx]'."
            raise ImportError(msg)


def _checked(estimator: Any) -> _Parts:
    """Take an estimator apart.

    Raises
    ------
    TypeError
        If a part of it has no form in a graph.
    """
    steps, classifier = split_estimator(estimator)
    name = type(classifier).__name__
    if type(classifier) not in CLASSIFIERS:
        allowed = ", ".join(cls.__name__ for cls in CLASSIFIERS)
        msg = f"A {name} cannot be exported, because it has no closed form that a graph can hold; use one of {allowed}."
        raise TypeError(msg)
    check_is_fitted(classifier)
    if getattr(classifier, "logit_estimator_", None) is not None:
        msg = (
            f"The {name} takes its logits from a {type(classifier.logit_estimator_).__name__}, which cannot be exported; "
            "use estimator=None."
        )
        raise TypeError(msg)
    encoder = steps[0] if steps and isinstance(steps[0], TextFeatures) else None
    others = steps[1:] if encoder is not None else steps
    for step in others:
        if type(step) not in STEPS:
            allowed = ", ".join(cls.__name__ for cls in STEPS)
            msg = (
                f"A {type(step).__name__} cannot be exported; before the classifier there may be a text encoder of this "
                f"package, and {allowed}."
            )
            raise TypeError(msg)
        check_is_fitted(step)
    if encoder is not None:
        check_is_fitted(encoder)
        _check_text_model(encoder)
    return _Parts(encoder, others, classifier)


def _check_text_model(encoder: TextFeatures) -> None:
    transformer: Any = encoder._backbone.transformer
    found = type(transformer).__name__
    if found not in TEXT_MODELS:
        allowed = ", ".join(name.removesuffix("Model") for name in TEXT_MODELS)
        msg = f"The text model is a {found}, which cannot be exported; use one of {allowed}."
        raise TypeError(msg)
    dtypes = {parameter.dtype for parameter in transformer.parameters()}
    if dtypes != {torch.float32}:
        msg = (
            f"The text model has weights of {', '.join(sorted(map(str, dtypes)))}, but only torch.float32 can be "
            "exported; convert it with .float()."
        )
        raise TypeError(msg)


class _Graph(nn.Module):
    """Everything from the inputs to the answers."""

    def __init__(self, parts: _Parts) -> None:
        super().__init__()
        encoder, classifier = parts.encoder, parts.classifier
        self.dtype = torch.float64 if encoder is None else torch.float32
        self.steps: list[Step] = [step_of(step, self.dtype) for step in parts.steps]
        self.head: Head = head_of(classifier, self.dtype)
        self.open_code = len(classifier.classes_)
        self.least = torch.from_numpy(classifier.offset_ + classifier.class_offsets_).to(self.dtype)
        self.pooling = self.backbone = None
        if encoder is not None:
            self.backbone, self.pooling, self.normalize = encoder._backbone.copy(), encoder.pooling, encoder.normalize
            self.backbone.model.eval()
            self.text_model = self.backbone.to(torch.device("cpu")).model
            self.activation = ACTIVATIONS[encoder._activation]()
            weights = encoder.weight_, encoder.bias_
            self.linear = None if weights[0] is None else tuple(map(torch.from_numpy, weights))

    def features(self, *inputs: Tensor) -> Tensor:
        """Features of the encoder, or those that are given."""
        if self.backbone is None:
            return inputs[0]
        vectors = self.backbone._forward(*inputs, self.pooling)
        if self.linear is not None:
            vectors = self.activation(functional.linear(vectors, *self.linear))
        return functional.normalize(vectors, dim=1) if self.normalize else vectors

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """Give the outputs of the graph."""
        rows = self.features(*inputs)
        for step in self.steps:
            rows = step(rows)
        nearest, score, margins = self.head.score(rows)
        score, margins = score.to(self.dtype), margins.to(self.dtype)
        label = torch.where(score < self.least[nearest], torch.full_like(nearest, self.open_code), nearest)
        return label, nearest, score, margins, rows


class _TextGraph(_Graph):
    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, ...]:
        """Give the outputs of the graph."""
        return super().forward(input_ids, attention_mask)


class _FeatureGraph(_Graph):
    def forward(self, features: Tensor) -> tuple[Tensor, ...]:
        """Give the outputs of the graph."""
        return super().forward(features)


def _traced(graph: _Graph, n_features: int) -> bytes:
    """Give a graph as ONNX, checked."""
    import onnx

    rows = torch.export.Dim("rows")
    if graph.backbone is None:
        names, inputs = ["X"], (torch.zeros(3, n_features, dtype=graph.dtype),)
        shapes: tuple[dict[int, Any], ...] = ({0: rows},)
    else:
        names, inputs = ["input_ids", "attention_mask"], (torch.ones(3, 4, dtype=torch.int64),) * 2
        inputs = inputs[0].clone(), inputs[1].clone()
        shapes = ({0: rows, 1: torch.export.Dim("tokens")},) * 2
    with _quiet(), torch.no_grad():
        program = torch.onnx.export(
            graph,
            inputs,
            dynamo=True,
            dynamic_shapes=shapes,
            input_names=names,
            output_names=list(_OUTPUTS),
            opset_version=_OPSET,
            external_data=False,
            verbose=False,
        )
    model: Any = program.model_proto  # type: ignore[union-attr]
    if (n_bytes := model.ByteSize()) > _MOST_BYTES:
        msg = f"The graph takes {n_bytes / 1e9:.1f} GB, but one file of ONNX holds 2; use a smaller text model or fewer axes."
        raise TypeError(msg)
    onnx.checker.check_model(model, full_check=True)
    content: bytes = model.SerializeToString()
    return content


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence what the exporter says about itself."""
    loggers = {logger: logger.level for logger in map(logging.getLogger, ("torch.onnx", "onnxscript", "onnx_ir"))}
    with PROCESS_STATE, quiet_libraries(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            for logger in loggers:
                logger.setLevel(logging.ERROR)
            yield
        finally:
            for logger, level in loggers.items():
                logger.setLevel(level)


def _described(parts: _Parts) -> tuple[Files, dict[str, Any]]:
    """Files of an exported model, and its manifest but for their hashes."""
    encoder, steps, classifier = parts
    files: Files = {}
    text: dict[str, Any] | None = None
    n_features = int(getattr(steps[0] if steps else classifier, "n_features_in_", classifier.n_features_in_))
    if encoder is not None:
        stored = encoder._backbone.stored()
        files[TOKENIZER] = stored.files[TOKENIZER]
        tokenizer = stored.description["tokenizer"]
        text = {
            "max_length": encoder._backbone.longest,
            "lowers": encoder._backbone.lowers,
            "truncation_side": tokenizer["truncation_side"],
            "split_special_tokens": tokenizer["split_special_tokens"],
            "pad_token_id": encoder._backbone.tokenizer().pad_token_id or 0,
        }
    graph = (_FeatureGraph if encoder is None else _TextGraph)(parts).eval()
    files[GRAPH] = _traced(graph, n_features)
    answers = classifier._possible_answers()
    training = None
    if hasattr(encoder, "training_texts_"):
        training, files[TRAINING_FEATURES] = _kept_texts(encoder, graph)
    held_out = getattr(classifier, "held_out_scores_", None)
    manifest = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "skellipsoid_version": __version__,
        "exported": datetime.now(UTC).isoformat(timespec="seconds"),
        "quantized": False,
        "answers": _labels(answers),
        "offset": float(classifier.offset_),
        "class_offsets": classifier.class_offsets_.tolist(),
        "held_out_scores": None if held_out is None else held_out.tolist(),
        "n_features": n_features,
        "rows_at_once": max(1, _HEAD_BYTES // graph.head.bytes_per_row),
        "text": text,
        "training_texts": training,
    }
    return files, manifest


def _labels(values: NDArray[Any]) -> dict[str, Any]:
    """Labels as JSON, and the type of their array."""
    kind = values.dtype.kind
    name = kind if kind in "OT" else values.dtype.str
    if kind not in "iufUOTb" or not all(isinstance(value, str | int | float) for value in values.tolist()):
        msg = f"Labels of the type {values.dtype} cannot be exported; fit with strings or numbers."
        raise TypeError(msg)
    return {"values": values.tolist(), "dtype": name}


def _kept_texts(encoder: Any, graph: _Graph) -> tuple[dict[str, Any], bytes]:
    """The training texts that an encoder keeps, as JSON, and what the classifier sees of them."""
    rows = torch.from_numpy(encoder.training_features_)
    for step in graph.steps:
        rows = step(rows)
    content = BytesIO()
    np.save(content, rows.numpy())
    labels = encoder.training_labels_
    described: dict[str, Any] = {"texts": encoder.training_texts_.tolist(), "labels": None, "dtype": None}
    if labels is not None:
        found = _labels(labels)
        described |= {"labels": found["values"], "dtype": found["dtype"]}
    return described, content.getvalue()


def _write(target: Path, files: Files) -> None:
    """Write files into a folder beside the target, which then takes its place."""
    with _explained_failure(target, sum(map(len, files.values()))):
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(mkdtemp(prefix=f".{target.name}-", dir=target.parent))
        try:
            beside.chmod(0o755)
            write_files(files, beside)
            to_disk(beside)
            beside.replace(target)
        except BaseException:
            shutil.rmtree(beside, ignore_errors=True)
            raise
