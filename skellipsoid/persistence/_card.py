"""The model card: a readable description of a saved model."""

import json
import os
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from skellipsoid_runtime._hub import NAME

from .._core.open_set_classifier import BaseOpenSetClassifier
from .._core.text_estimators import TakesTexts
from .._encoders.text_features import TextFeatures
from .._traffic.monitor import OpenShareMonitor
from .._traffic.operating_point import TunedOperatingPointCV

#: Largest number of classes that are named.
_MOST_NAMED = 200


def parts_of(estimator: Any, name: str = "") -> list[tuple[str, Any]]:
    """Name and estimator of everything in a model that has parameters, in the order of the data."""
    if isinstance(estimator, Pipeline):
        return [part for step_name, step in estimator.steps for part in parts_of(step, _dotted(name, step_name))]
    if isinstance(estimator, FrozenEstimator):
        return parts_of(estimator.estimator, name)
    if isinstance(estimator, OpenShareMonitor):
        return [(name, estimator), *parts_of(estimator.estimator, _dotted(name, "estimator"))]
    if isinstance(estimator, TunedOperatingPointCV):
        return [(name, estimator), *parts_of(estimator.estimator_, _dotted(name, "estimator_"))]
    return [(name, estimator)] if hasattr(estimator, "get_params") else []


def _dotted(*names: str) -> str:
    return ".".join(filter(None, names))


def write_card(estimator: Any, manifest: dict[str, Any], n_bytes: int, place: str = "path/to/this/folder") -> str:
    """Write the card of a fitted estimator in Markdown; ``place`` is where it is loaded from."""
    parts = parts_of(estimator)
    classifier = next((part for _, part in parts if isinstance(part, BaseOpenSetClassifier)), None)
    sections = [
        _summary(parts, classifier, manifest, n_bytes),
        _usage(parts, place),
        *([] if classifier is None else [_classes(classifier), _operating_point(classifier)]),
        *_changes(classifier),
        *_training_data(parts),
        _parameters(parts),
        *_provenance(manifest["provenance"]),
        _bullets("Versions", {name: version for name, version in manifest["versions"].items() if version}),
    ]
    return "\n\n".join(sections) + "\n"


def _summary(parts: list[tuple[str, Any]], classifier: Any, manifest: dict[str, Any], n_bytes: int) -> str:
    of_texts = any(isinstance(part, TextFeatures) for _, part in parts)
    answers_texts = any(isinstance(part, TakesTexts) and hasattr(part, "predict") for _, part in parts)
    what = "Text encoder" if classifier is None else "Open-set text classifier" if of_texts else "Open-set classifier"
    if classifier is None and not of_texts:
        what = "Open-set text classifier" if answers_texts else "Transformer"
    lines = [f"# {what}"]
    if classifier is not None:
        lines.append(
            f"Predicts one of {len(classifier.classes_)} known classes, or {_code(classifier.open_label_)} (open) "
            "where a sample belongs to none of them."
        )
    size = f"{n_bytes / 1e6:.1f} MB" if n_bytes >= 1e5 else f"{n_bytes / 1e3:.1f} kB"
    lines.append(f"Saved by skellipsoid {manifest['skellipsoid_version']} on {manifest['saved']}, {size}.")
    steps = [f"{_code(type(part).__name__)}{_sizes(part)}" for _, part in parts]
    lines.append("In the order of the data:\n\n" + "\n".join(f"{i}. {step}" for i, step in enumerate(steps, start=1)))
    return "\n\n".join(lines)


def _sizes(part: Any) -> str:
    """Give the number of training samples of a part, and its features."""
    found = []
    if isinstance(part, TextFeatures):
        found.append(f"texts to {part._n_features_out} features, embedding model {_code(shown_name(part.model_name))}")
    elif isinstance(part, BaseOpenSetClassifier):
        found.append(f"{part.n_features_in_} features")
    elif hasattr(part, "components_"):
        found.append(f"{part.components_.shape[1]} to {len(part.components_)} features")
    if hasattr(part, "groups_") and len(part.groups_):
        found.append(f"fitted on {len(part.groups_)} samples")
    return f" ({', '.join(found)})" if found else ""


def shown_name(text_model: Any) -> str:
    """Public name of an embedding model: of a local folder only its last part."""
    name = str(text_model)
    return name if NAME.fullmatch(name) and not os.path.lexists(name) else os.path.basename(os.path.normpath(name))


def _usage(parts: list[tuple[str, Any]], place: str) -> str:
    texts = bool(parts) and isinstance(parts[0][1], TakesTexts)
    method = "predict" if parts and hasattr(parts[-1][1], "predict") else "transform"
    argument = '["a text", "another text"]' if texts else "X"
    takes = (
        "\n\nIt takes the words of users alone: clean messages as the training texts were, without HTML, quoted "
        "replies and signatures."
        if texts
        else ""
    )
    return (
        "## How to load it\n\n```python\nimport skellipsoid\n\n"
        f'model = skellipsoid.load("{place}")\nmodel.{method}({argument})\n```\n\n'
        "Loading runs no code from this folder. `skellipsoid.json` holds the same facts for programs."
        f"{takes}"
    )


def _classes(classifier: BaseOpenSetClassifier) -> str:
    names = classifier.classes_.tolist()
    more = [f"and {len(names) - _MOST_NAMED} more"] if len(names) > _MOST_NAMED else []
    return "## Classes\n\n" + ", ".join([*map(_code, names[:_MOST_NAMED]), *more])


def _changes(classifier: Any) -> list[str]:
    """Section on changes of the classes since the fit, if there are any."""
    lines = []
    for change in getattr(classifier, "changes_", []):
        named = ", ".join(_code(label) for label in change["classes"][:_MOST_NAMED])
        into = f" into {_code(change['into'])}" if "into" in change else ""
        samples = f" ({change['n_samples']} samples)" if change["n_samples"] else ""
        lines.append(f"- {change['when']}: {change['what']}{named and ' '}{named}{into}{samples}")
    return ["## Changes since the fit\n\n" + "\n".join(lines)] if lines else []


def _operating_point(classifier: Any) -> str:
    offset = classifier.offset_
    text = f"`offset_` is {offset:.6g}"
    text += ", the fitted threshold itself." if offset == 0 else ": open where `score_samples` is below it."
    moved = np.flatnonzero(getattr(classifier, "class_offsets_", np.zeros(0)))
    if len(moved):
        named = [f"{_code(classifier.classes_[k].item())} {classifier.class_offsets_[k]:+.6g}" for k in moved]
        text += f" For some classes it is moved: {', '.join(named)}."
    return "## Threshold\n\n" + text


def _training_data(parts: list[tuple[str, Any]]) -> Iterator[str]:
    """Sections that say that the model holds training texts or samples."""
    for _, part in parts:
        if hasattr(part, "training_texts_"):
            yield (
                f"## Training texts\n\nThis folder holds {len(part.training_texts_)} training texts, in "
                "`skellipsoid.json`. Whoever has the folder can read them. Train without `keep_texts` to leave them "
                "out."
            )
        if getattr(part, "keep_samples", False) and part._kept is not None:
            learned = "" if part._learned is None else f" and of {len(part._learned)} learned messages"
            yield (
                f"## Training samples\n\nThis folder holds the features of {len(part._kept)} training samples{learned}"
                ", with which classes can be added. Whoever has the folder can read them. Save the model with "
                "`keep_samples=False` to leave them out."
            )


def _parameters(parts: list[tuple[str, Any]]) -> str:
    """Parameters that differ from their defaults, by part."""
    lines = []
    for name, part in parts:
        wraps = isinstance(part, OpenShareMonitor | TunedOperatingPointCV)
        defaults = {} if wraps else type(part)().get_params(deep=False)
        for key, value in part.get_params(deep=False).items():
            if isinstance(part, TunedOperatingPointCV) and (key == "estimator" or value is None):
                continue
            if key in ("memory", "verbose"):  # these belong to the machine or the user
                continue
            if key == "model_name":
                value = shown_name(value)
            if key not in defaults or type(value) is not type(defaults[key]) or value != defaults[key]:
                lines.append(f"- {_code(_dotted(name, key))}: {_code(value)}")
    rest = "All others are at their defaults." if lines else "All are at their defaults."
    return "\n".join(["## Parameters", "", *lines, *([""] if lines else []), rest])


def _provenance(provenance: dict[str, Any]) -> list[str]:
    """List short values; tables and texts of several lines get a section of their own."""
    short = {key: value for key, value in provenance.items() if not _is_long(value)}
    sections = [_bullets("Where it comes from", short)] if short else []
    for key, value in provenance.items():
        if isinstance(value, dict):
            sections.append(_bullets(key, value))
        elif _is_long(value):
            fence = _fence(value, 3)
            sections.append(f"## {_heading(key)}\n\n{fence}text\n{value.rstrip()}\n{fence}")
    return sections


def _is_long(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, str) and "\n" in value)


def _bullets(title: str, facts: dict[str, Any]) -> str:
    return "\n".join(
        [f"## {_heading(title)}", "", *(f"- {_code(key)}: {_code(value)}" for key, value in facts.items())]
    )


def _heading(text: str) -> str:
    return _code(text) if re.search(r"[^\w .,-]", text) else text


def _code(value: Any) -> str:
    """Format a value as code on one line, with Markdown and HTML escaped."""
    text = value if isinstance(value, str) else json.dumps(value) if isinstance(value, dict | list) else str(value)
    text = json.dumps(text, ensure_ascii=False)[1:-1] if re.search(r"[\x00-\x1f\x7f\u2028\u2029]", text) else text
    fence = _fence(text, 1)
    blank = " " if text.startswith("`") or text.endswith("`") or not text.strip() else ""
    return f"{fence}{blank}{text}{blank}{fence}"


def _fence(text: str, shortest: int) -> str:
    """Backticks, more than any run of them in a text."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    return "`" * max(shortest, longest + 1)
