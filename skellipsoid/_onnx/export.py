"""Exports a fitted classifier or Pipeline as one ONNX graph with a manifest, all files or none."""

import importlib.util
import json
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from skellipsoid_runtime._folder import FORMAT, FORMAT_VERSION, GRAPH, MANIFEST, TOKENIZER, TRAINING_FEATURES
from skellipsoid_runtime._install import how_to_install

from .._core.open_set_classifier import BoundaryOpenSetClassifier
from .._core.pipelines import split_estimator
from .._encoders.text_features import TextFeatures
from .._encoders.torch.backbone import TextBackbone
from .._encoders.torch.probes import check_vectors
from .._traffic.operating_point import TunedOperatingPointCV
from .._traffic.predict_set import zones_of
from .._version import __version__
from ..persistence._folder import Files, manifest_bytes, sha256
from ..persistence._sizes import check_sizes
from .folder import SETTINGS, check_target, write_export
from .graph import Graph, Parts, scored, seen, traced
from .heads import CLASSIFIERS, STEPS
from .quantize import grown, growth_of, import_onnxruntime, outputs_of, quantized, with_affine

#: Embedding models whose graphs were compared at many batch sizes and lengths.
TEXT_MODELS = ("BertModel", "DistilBertModel", "MPNetModel", "RobertaModel")
#: Memory of the head for the rows of one run, in bytes.
_HEAD_BYTES = 2**26
#: Texts on which the graph is compared with the package before it is written.
_PROBES = ["one two", "", "a longer text of eight words or so", "\U0001f600"]
#: Largest difference of features, and relative difference of scores, between graph and package.
_TOLERANCE = 1e-3


def export_onnx(estimator: Any, folder: str | Path, *, quantize: bool = False, overwrite: bool = False) -> None:
    """Write a fitted classifier or text Pipeline as one ONNX graph, for machines without torch.

    The graph takes token ids and their mask (or features). For each sample it returns the index of the prediction, the
    nearest class, the score, the margins of all classes, and the features that the classifier sees. The package
    ``skellipsoid-runtime[onnx]`` predicts with the folder; it needs NumPy, onnxruntime and tokenizers alone.

    Parameters
    ----------
    estimator : classifier or Pipeline
        Fitted: an :class:`EllipsoidOpenSetClassifier`, with or without a trainer, or a classifier of
        :mod:`skellipsoid.baselines` with a closed form (not those that look at neighbours); or a Pipeline of a text
        encoder of this package whose embedding model is a BERT, DistilBERT, MPNet or RoBERTa, scikit-learn's
        ``StandardScaler``, ``Normalizer``, ``PCA`` or ``TruncatedSVD``, and such a classifier. A fitted search or
        :class:`TunedOperatingPointCV` exports the fitted estimator inside. The threshold is part of the graph.
    folder : str or Path
        A new or empty folder. All files are written, or none. The command ``skellipsoid export`` writes beside a saved
        model, where ``skellipsoid predict`` uses it.
    quantize : bool, default=False
        INT8 quantization of the embedding model: faster, and a quarter of the size, except for the token table and for
        matrix products that would lose too much precision. Needs an encoder fitted with ``keep_texts=True``: sizes and
        p-values are recalibrated on the training texts. Squared radii and squared held-out distances grow by as much as
        the squared distances of the training texts (thresholds of other scores move by the median change).
    overwrite : bool, default=False
        Whether to replace an exported model in the folder, when the new one is complete.

    Raises
    ------
    TypeError
        If the estimator, a step or the embedding model cannot be exported, or ``quantize`` is not a Boolean. Then
        nothing is written.
    ImportError
        If the packages of the extra ``[onnx]`` are not installed.
    FileExistsError
        If the folder is not empty, unless ``overwrite`` is true and it holds an exported model and nothing else.
    OSError
        If the folder cannot be written.
    sklearn.exceptions.NotFittedError
        If the estimator is not fitted.

    See Also
    --------
    save : Keep a model for this package, with its parameters.

    Notes
    -----
    The predictions equal those of the estimator unless a score is within 0.0001 of the threshold, because a graph
    rounds differently. The graph of a text Pipeline computes in single precision; its scores differ by about 0.001 in
    the median from those of an encoder with ``dtype="bfloat16"``. The graph of a classifier alone computes in double
    precision. The warning for samples with unusual norms is not part of the graph.

    Examples
    --------
    >>> import os, tempfile, numpy as np, skellipsoid
    >>> X, y = np.array([[0.0], [1.0], [9.0], [10.0]] * 5), [0, 0, 1, 1] * 5
    >>> clf = skellipsoid.EllipsoidOpenSetClassifier(random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     skellipsoid.export_onnx(clf, parent + "/model")
    ...     sorted(os.listdir(parent + "/model"))
    ['model.onnx', 'skellipsoid_onnx.json']
    """
    for name, value in (("quantize", quantize), ("overwrite", overwrite)):
        if not isinstance(value, bool | np.bool_):
            raise TypeError(f"{name}={value!r} must be True or False.")
    target = Path(folder).resolve()  # the folder replaces an empty one
    files = exported_files(estimator, target, quantize=bool(quantize), overwrite=bool(overwrite))
    write_export(target, files)


def exported_files(
    estimator: Any, target: Path, *, quantize: bool, overwrite: bool, made_of: dict[str, Any] | None = None
) -> Files:
    """Return the files of an export; ``made_of`` names the saved model that it is made from.

    Errors come before the graph is made, which takes a while.
    """
    parts = _checked(estimator)
    if quantize and not hasattr(parts.encoder, "training_texts_"):
        raise TypeError(
            "quantize recalibrates the model with the training texts, but the estimator keeps none; fit its text "
            "encoder with keep_texts, or export without quantize."
        )
    check_target(target, overwrite=overwrite)
    _check_packages()
    files, manifest = _described(parts, quantize=quantize)
    if made_of is not None:
        manifest["made_of"] = made_of
    manifest["sha256"] = {name: sha256(content) for name, content in files.items()}
    manifest["sizes"] = {name: len(content) for name, content in files.items()}
    files[MANIFEST] = manifest_bytes(manifest)
    check_sizes({MANIFEST: files[MANIFEST]})
    return files


def _check_packages() -> None:
    for name in ("onnx", "onnxscript", "onnxruntime"):
        if importlib.util.find_spec(name) is None:
            how = how_to_install("skellipsoid[onnx]")
            raise ImportError(f"export_onnx needs the package {name}, which is not installed: {how}.")
    import_onnxruntime()


def _checked(estimator: Any) -> Parts:
    """Split an estimator into encoder, steps and classifier.

    Raises
    ------
    TypeError
        If a part of it cannot be a graph.
    """
    steps, classifier = split_estimator(estimator)
    name = type(classifier).__name__
    if isinstance(classifier, TunedOperatingPointCV):  # a fitted one would have been taken apart
        check_is_fitted(classifier)
    if type(classifier) not in CLASSIFIERS:
        allowed = ", ".join(cls.__name__ for cls in CLASSIFIERS)
        raise TypeError(f"A {name} cannot be exported, because no graph is known for it; use one of {allowed}.")
    check_is_fitted(classifier)
    if getattr(classifier, "logit_estimator_", None) is not None:
        raise TypeError(
            f"The {name} takes its logits from a {type(classifier.logit_estimator_).__name__}, which cannot be "
            "exported; use estimator=None."
        )
    # A user's subclass may compute other features.
    is_own = bool(steps) and type(steps[0]).__module__.startswith(f"{__package__.partition('.')[0]}.")
    encoder = steps[0] if is_own and isinstance(steps[0], TextFeatures) else None
    others = steps[1:] if encoder is not None else steps
    for step in others:
        if type(step) not in STEPS:
            allowed = ", ".join(cls.__name__ for cls in STEPS)
            raise TypeError(
                f"A {type(step).__name__} cannot be exported; before the classifier there may be a text encoder of "
                f"this package, and {allowed}."
            )
        check_is_fitted(step)
    if encoder is not None:
        check_is_fitted(encoder)
        _check_text_model(encoder)
    return Parts(encoder, others, classifier)


def _check_text_model(encoder: TextFeatures) -> None:
    transformer: Any = encoder._backbone.transformer
    found = type(transformer).__name__
    if found not in TEXT_MODELS:
        allowed = ", ".join(name.removesuffix("Model") for name in TEXT_MODELS)
        raise TypeError(f"The embedding model is a {found}, which cannot be exported; use one of {allowed}.")
    dtypes = {parameter.dtype for parameter in transformer.parameters()}
    if dtypes != {torch.float32}:
        raise TypeError(
            f"The embedding model has weights of {', '.join(sorted(map(str, dtypes)))}, but only torch.float32 can be "
            "exported; convert it with .float()."
        )
    check_vectors(encoder._backbone.model)


def _described(parts: Parts, *, quantize: bool) -> tuple[Files, dict[str, Any]]:
    """Files of an exported model, and its manifest without their hashes."""
    encoder, steps, classifier = parts
    backbone = None if encoder is None else encoder._backbone.copy().to(torch.device("cpu"))
    graph = Graph(parts, backbone).eval()
    held_out = getattr(classifier, "held_out_scores_", None)
    n_features = int((steps[0] if steps and encoder is None else classifier).n_features_in_)
    files: Files = {GRAPH: traced(graph, n_features)}
    text = training = None
    if encoder is not None and backbone is not None:
        text, files[TOKENIZER] = _tokenizer(encoder)
        files |= _settings_for_others(backbone)
        _verify(files[GRAPH], backbone, graph)
        kept = seen(graph, encoder.training_features_) if hasattr(encoder, "training_texts_") else None
        if quantize:
            files[GRAPH], kept, held_out = _recalibrated(files[GRAPH], backbone, graph, parts, held_out)
        if kept is not None:
            labels = encoder.training_labels_
            training = {
                "texts": encoder.training_texts_.tolist(),
                "labels": None if labels is None else _labels(labels),
            }
            np.save(content := BytesIO(), kept)
            files[TRAINING_FEATURES] = content.getvalue()
    answers = _labels(classifier._possible_labels())
    files[GRAPH] = _with_names(files[GRAPH], answers["values"])
    manifest = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "skellipsoid_version": __version__,
        "exported": datetime.now(UTC).isoformat(timespec="seconds"),
        "quantized": quantize,
        "answers": answers,
        "offset": float(classifier.offset_),
        "class_offsets": classifier.class_offsets_.tolist(),
        "held_out_scores": None if held_out is None else held_out.tolist(),
        "n_features": n_features,
        "rows_at_once": max(1, _HEAD_BYTES // graph.head.bytes_per_row),
        "text": text,
        "training_texts": training,
    }
    if (asking := zones_of(classifier)) is not None:
        manifest["asking"] = {name: asking[name] for name in ("low", "high", "gap")}
    return files, manifest


def _tokenizer(encoder: TextFeatures) -> tuple[dict[str, Any], bytes]:
    """Return the settings of a tokenizer, and its rules."""
    stored = encoder._backbone.stored()
    chosen = stored.description["tokenizer"]
    settings = {
        "max_length": encoder._backbone.longest,
        "lowers": encoder._backbone.lowers,
        "prompt": encoder._backbone.prompt,
        "truncation_side": chosen["truncation_side"],
        "split_special_tokens": chosen["split_special_tokens"],
        "pad_token_id": encoder._backbone.tokenizer().pad_token_id or 0,
    }
    return settings, stored.files[TOKENIZER]


def _settings_for_others(backbone: TextBackbone) -> Files:
    """Files that tokenizers in other languages read beside ``tokenizer.json``."""
    tokenizer: Any = backbone.tokenizer()
    transformer: Any = backbone.transformer
    special = {name: str(token) for name, token in tokenizer.special_tokens_map.items() if isinstance(token, str)}
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": backbone.longest,
        "padding_side": "right",
        "truncation_side": tokenizer.truncation_side,
        "do_lower_case": backbone.lowers,
        "clean_up_tokenization_spaces": False,
        **special,
    }
    found = zip(SETTINGS, (settings, special, transformer.config.to_diff_dict()), strict=True)
    return {name: f"{json.dumps(content, indent=2, default=str)}\n".encode() for name, content in found}


def _with_names(content: bytes, answers: list[Any]) -> bytes:
    """Write the labels into a graph, for users without the manifest: ``answers[label]``, of which the last is open."""
    import onnx

    model = onnx.load_model_from_string(content)
    names = {"answers": answers, "classes": answers[:-1], "open_label": answers[-1]}
    onnx.helper.set_model_props(model, {name: json.dumps(value) for name, value in names.items()})
    return bytes(model.SerializeToString())


def _verify(content: bytes, backbone: TextBackbone, graph: Graph) -> None:
    """Raise an error if a graph predicts differently from the package, which should not happen."""
    with torch.no_grad():
        inputs = [(ids := torch.tensor([tokens]), torch.ones_like(ids)) for tokens in backbone.tokenize(_PROBES)]
        expected = seen(graph, torch.cat([graph.features(each) for each in inputs]).numpy())
    score, features = outputs_of(content, backbone, _PROBES)
    scores = scored(graph, expected)
    difference = max(np.abs(features - expected).max(), (np.abs(score - scores) / (1 + np.abs(scores))).max())
    if not difference <= _TOLERANCE:
        raise TypeError(
            f"The graph of this embedding model differs from the model itself by {difference:.2g}; export a model with "
            "another embedding model, and report this one."
        )


def _recalibrated(
    content: bytes, backbone: TextBackbone, graph: Graph, parts: Parts, held_out: NDArray[np.float64] | None
) -> tuple[bytes, NDArray[np.float32], NDArray[np.float64] | None]:
    """Quantise the embedding model of a graph; gives it, the classifier's features of training texts, and scores."""
    encoder: Any = parts.encoder
    texts = encoder.training_texts_.tolist()
    content = quantized(content, "text_model.transformer", backbone, texts)
    before = scored(graph, seen(graph, encoder.training_features_))
    after, features = outputs_of(content, backbone, texts)
    known = np.ones(len(after), dtype=bool)
    if encoder.training_labels_ is not None:
        known = np.isin(encoder.training_labels_, parts.classifier.classes_)
    if not known.any():  # classes were replaced since the fit: all texts measure the effect of quantization
        known[:] = True
    before, after = before[known], after[known]
    if not isinstance(parts.classifier, BoundaryOpenSetClassifier):
        return with_affine(content, ["score"], 1, -float(np.median(after - before))), features, held_out
    growth = growth_of(before, after)
    factor = (1 + growth) ** -0.5  # margins are 1 − distance / radius
    content = with_affine(content, ["score", "margins"], factor, 1 - factor)
    return content, features, None if held_out is None else grown(held_out, growth)


def _labels(values: NDArray[Any]) -> dict[str, Any]:
    """Labels as JSON, and the type of their array."""
    kind = values.dtype.kind
    name = kind if kind in "OT" else values.dtype.str
    if kind not in "iufUOTb" or not all(isinstance(value, str | int | float) for value in values.tolist()):
        raise TypeError(f"Labels of the type {values.dtype} cannot be exported; fit with strings or numbers.")
    return {"values": values.tolist(), "dtype": name}
