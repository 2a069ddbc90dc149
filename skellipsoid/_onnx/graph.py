"""The graph of a classifier or Pipeline: a torch module from token ids or features to predictions, traced as ONNX."""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from .._core.norms import are_zeros, less_excess
from .._encoders.text_features import TextFeatures, less_unread
from .._encoders.torch.backbone import TextBackbone
from .._traffic.predict_set import zones_of
from .heads import Head, Step, first_by_score, head_of, step_of
from .quantize import quiet_onnx

#: Largest size of a graph in one file, in bytes.
_MOST_BYTES = 2**31 - 2**20
_OPSET = 20
_OUTPUTS = ("label", "nearest_class", "score", "margins", "features", "unread")
#: Further outputs of a graph that can ask back.
_TO_ASK = ("first_classes", "gap")
#: Rows that are scored at once.
_AT_ONCE = 64


class Parts(NamedTuple):
    """Parts of an estimator that can be exported."""

    encoder: TextFeatures | None
    steps: list[Any]
    classifier: Any


class Graph(nn.Module):
    """All steps from the inputs to the predictions."""

    def __init__(self, parts: Parts, backbone: TextBackbone | None) -> None:
        super().__init__()
        encoder, classifier = parts.encoder, parts.classifier
        self.dtype = torch.float64 if encoder is None else torch.float32
        self.steps: list[Step] = [step_of(step, self.dtype) for step in parts.steps]
        self.head: Head = head_of(classifier, self.dtype)
        self.open_code = len(classifier.classes_)
        self.asks = zones_of(classifier) is not None
        #: Score of an unreadable text, a row of zeros; ``None`` if it is an ordinary sample.
        self.unread_score = classifier._unread_score if classifier._zeros_are_none else None
        self.least = torch.from_numpy(classifier.offset_ + classifier.class_offsets_).to(self.dtype)
        self.encoder: TextFeatures | None = encoder
        self.backbone = backbone
        if encoder is not None and backbone is not None:
            self.text_model: Any = backbone.model.eval()
            assert self.text_model.n_prompt_readable >= 0  # noqa: S101 - counted here: a trace cannot
            self.text_model.transformer.set_attn_implementation("eager")  # the smallest graph
            modules: list[Any] = list(self.text_model.after)
            for module in modules:
                if hasattr(module, "_exclude_prompt_from_mask"):
                    module._exclude_prompt_from_mask = _without_prompt
            self.linear = [torch.from_numpy(each) for each in (encoder.weight_, encoder.bias_) if each is not None]

    def features(self, inputs: tuple[Tensor, ...]) -> Tensor:
        """Features of the encoder, or those that are given."""
        if self.encoder is None or self.backbone is None:
            return inputs[0]
        embeddings = vectors = self.text_model(*inputs)
        if self.linear:
            vectors = functional.linear(vectors, *self.linear)
        if self.encoder.normalize:
            vectors = functional.normalize(vectors, dim=1)
        return less_unread(vectors, embeddings) if self.text_model.zeros else vectors

    def judged(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Return the outputs of the head, with the mask of unreadable rows inserted as the fourth."""
        nearest, score, margins, *in_order = self.head.score(rows)
        score, margins = _without_nan(score.to(self.dtype)), _without_nan(margins.to(self.dtype))
        if self.unread_score is None:
            return nearest, score, margins, torch.zeros_like(nearest, dtype=torch.bool), *in_order
        unread = are_zeros(rows)
        of_assigned = margins.gather(1, nearest.unsqueeze(1))
        margins = torch.where(unread.unsqueeze(1), less_excess(margins, of_assigned, self.unread_score), margins)
        return nearest, torch.where(unread, score.clip(max=self.unread_score), score), margins, unread, *in_order

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """Give the outputs of the graph."""
        rows = self.features(inputs)
        for step in self.steps:
            rows = step(rows)
        nearest, score, margins, unread, *in_order = self.judged(rows)
        label = torch.where(score >= self.least[nearest], nearest, torch.full_like(nearest, self.open_code))
        outputs = label, nearest, score, margins, rows, unread
        if not self.asks:
            return outputs
        first, gap = in_order or first_by_score(margins)
        return *outputs, first, gap.to(self.dtype)


def _without_nan(scores: Tensor) -> Tensor:
    """Replace NaN scores by −∞, as ``predict`` does."""
    return torch.where(torch.isnan(scores), torch.full_like(scores, -torch.inf), scores)


def _without_prompt(mask: Tensor, n_prompt: int) -> Tensor:
    """Replace the method of a pooling, which looks for padding on the left."""
    return mask * (torch.arange(mask.shape[1]) >= n_prompt)


def traced(graph: Graph, n_features: int) -> bytes:
    """Give a graph as ONNX, checked."""
    import onnx

    inputs: dict[str, Tensor] = {"X": torch.zeros(3, n_features, dtype=graph.dtype)}
    sizes: dict[int, Any] = {0: torch.export.Dim("rows")}
    if graph.backbone is not None:
        inputs = {name: torch.ones(3, 4, dtype=torch.int64) for name in ("input_ids", "attention_mask")}
        sizes[1] = torch.export.Dim("tokens")
    with quiet_onnx(), torch.no_grad():
        program = torch.onnx.export(
            graph,
            tuple(inputs.values()),
            dynamo=True,
            dynamic_shapes=((sizes,) * len(inputs),),
            input_names=[*inputs],
            output_names=[*_OUTPUTS, *(_TO_ASK if graph.asks else ())],
            opset_version=_OPSET,
            external_data=False,
            verbose=False,
        )
    model: Any = program.model_proto  # type: ignore[union-attr]
    if (n_bytes := model.ByteSize()) > _MOST_BYTES:
        raise TypeError(
            f"The graph takes {n_bytes / 1e9:.1f} GB, but a file of ONNX holds 2 GB; use a smaller embedding model, or "
            "a classifier with fewer features."
        )
    onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString())


def seen(graph: Graph, features: NDArray[np.float32]) -> NDArray[np.float32]:
    """Features of the classifier from those of the encoder."""
    rows = torch.from_numpy(features)
    for step in graph.steps:
        rows = step(rows)
    return np.asarray(rows.numpy())


def scored(graph: Graph, rows: NDArray[np.float32]) -> NDArray[np.floating]:
    """Scores of features of the classifier."""
    parts = np.array_split(rows, -(-len(rows) // _AT_ONCE))
    return np.concatenate([graph.judged(torch.from_numpy(part))[1].numpy() for part in parts])
