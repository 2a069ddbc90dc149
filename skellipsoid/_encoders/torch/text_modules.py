"""The steps from token vectors h_t to the vector of a text: their mean Σ h_t / n, or modules of sentence-transformers.

They are described as plain data. Only modules that are listed here are built, with settings that are plain.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..._torch.devices import kept_torch_state

#: Settings of a configuration that the features do not depend on; the model is always built in single precision.
_UNUSED_SETTINGS = {
    *("_name_or_path", "architectures", "dtype", "finetuning_task", "id2label", "label2id", "prefix", "problem_type"),
    *("task_specific_params", "tokenizer_class", "torch_dtype", "transformers_version"),
}
#: Settings that could choose code outside of the model's own class.
_NEVER_SETTINGS = re.compile(
    r"auto_map|use_kernels|trust_remote_code|\w*(kwargs|args|implementation|_config)|\w*(backbone|remote)\w*"
)
_PLAIN_TEXT = re.compile(r"[\w.+ -]{0,100}", re.ASCII)
#: Modules after the transformer. Their settings are those that sentence-transformers itself saves.
_MODULES = ("Pooling", "Normalize", "Dense", "LayerNorm", "Dropout")
_ACTIVATIONS = ("Identity", "Tanh", "ReLU", "GELU", "SiLU", "Sigmoid", "LeakyReLU", "ELU", "Softplus")
#: What modules after the pooling read and give.
_VECTOR = "sentence_embedding"


def token_means(vectors: Tensor, mask: Tensor) -> Tensor:
    """Mean of the token vectors of each text, (n_texts, width)."""
    weights = mask.unsqueeze(2).to(vectors.dtype)
    mean: Tensor = (vectors * weights).sum(1) / weights.sum(1)
    return mean


class LayerMix(nn.Module):
    """Adds the means of the token vectors after intermediate layers to the vector of a text.

    The sum is x / ‖x‖₂ + w Σ_l (m_l − c_l) / ‖m_l − c_l‖₂, where m_l is the mean of the token vectors after layer l,
    and c_l the mean of m_l over the training texts: what they share, in the first layers most of m_l. Zeros, of texts
    that the model cannot read, stay zeros.

    Parameters
    ----------
    layers : sequence of int
        0 is what goes into the first layer of the transformer.
    weight : float
        w.
    width : int
        Of a vector.
    """

    def __init__(self, layers: Sequence[int], weight: float, width: int) -> None:
        super().__init__()
        self.layers, self.weight = tuple(layers), weight
        self.centres: Tensor
        self.register_buffer("centres", torch.zeros(len(self.layers), width))

    def forward(self, vectors: Tensor) -> Tensor:
        """Mix vectors of texts and their means, (n_texts, 1 + n_layers, width), to (n_texts, width)."""
        others = functional.normalize(vectors[:, 1:] - self.centres, dim=2).sum(dim=1)
        found = functional.normalize(vectors[:, 0], dim=1) + self.weight * others
        return torch.where(vectors[:, 0].ne(0).any(dim=1, keepdim=True), found, torch.zeros_like(found))


def pool(modules: nn.ModuleList, vectors: Tensor, mask: Tensor, n_prompt: int) -> Tensor:
    """Make one vector of each text from its token vectors, (n_texts, width of the last module).

    Without modules it is their mean. The first ``n_prompt`` tokens are those of the prompt.
    """
    if not len(modules):
        return token_means(vectors, mask)
    features: dict[str, Any] = {"token_embeddings": vectors, "attention_mask": mask, "prompt_length": n_prompt}
    for module in modules:
        features = module(features)
    found: Tensor = features[_VECTOR]
    return found


def count_layers(transformer: nn.Module) -> int | None:
    """Count the layers of a transformer, by its configuration; ``None`` if that names none."""
    config: Any = transformer.config
    names = ("num_hidden_layers", "n_layers", "num_layers")
    return next((found for name in names if (found := getattr(config, name, None))), None)


def width_after(modules: nn.ModuleList, token_width: int) -> int:
    """Give the length of the vectors that ``pool`` makes of token vectors, without computing one."""
    width = token_width
    for module in modules:
        name: Any = type(module).__name__
        if name == "Pooling":
            modes: Any = module.pooling_mode
            width = token_width * (1 if isinstance(modes, str) else len(modes))
        elif name == "Dense":
            width = int(module.out_features)  # type: ignore[arg-type]
            if module.module_output_name != _VECTOR:  # of each token
                token_width = width
    return width


def own_modules(modules: Sequence[nn.Module], prompt: str) -> list[nn.Module]:
    """Give the modules that make the vectors of an embedding model; none if these are the mean of all token vectors.

    Unit length at the end is left to the encoder.

    Raises
    ------
    ValueError
        If there is a module that is not listed here, or one with a setting that is not plain.
    """
    described = without_unit_length([describe_module(module) for module in modules])
    return [] if is_mean(described, prompt) else list(modules[: len(described)])


def without_unit_length(described: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out unit length at the end."""
    if not described or described[-1]["name"] != "Normalize":
        return described
    is_last = all(value == _VECTOR for value in described[-1]["settings"].values())  # not of token vectors
    return without_unit_length(described[:-1]) if is_last else described


def is_mean(described: list[dict[str, Any]], prompt: str) -> bool:
    """Whether modules give the mean of all token vectors."""
    if [module["name"] for module in described] != ["Pooling"]:
        return not described
    settings = described[0]["settings"]
    if (modes := settings.get("pooling_mode")) is None:  # older files have one setting for each way to pool
        modes = [name for name, value in settings.items() if name.startswith("pooling_mode_") and value]
    is_chosen = modes in ("mean", ["mean"], [], ["pooling_mode_mean_tokens"])
    return is_chosen and (settings.get("include_prompt", True) or not prompt)


def first_columns(width: int, n_columns: int) -> Any:
    """Make the module that leaves the first columns of a vector."""
    from sentence_transformers.sentence_transformer import modules

    with kept_torch_state():  # a new layer draws weights, which are then replaced
        layer: Any = modules.Dense(width, n_columns, bias=False, activation_function=nn.Identity())
    layer.load_state_dict({"linear.weight": torch.eye(width)[:n_columns]})
    return layer


def describe_module(module: Any) -> dict[str, Any]:
    """Give a module of sentence-transformers as its name and settings.

    Raises
    ------
    ValueError
        If it is not listed here, or has a setting that is not plain.
    """
    name = type(module).__name__
    if not type(module).__module__.startswith("sentence_transformers."):
        raise ValueError(f"its module {name} is not of sentence-transformers")
    settings: dict[str, Any] = dict(module.get_config_dict()) if name in _MODULES else {}
    if "activation_function" in settings:
        # sentence-transformers gives its dotted path.
        settings["activation_function"] = type(module.activation_function).__name__
    described = {"name": name, "settings": settings}
    check_module(described)
    return described


def build_module(name: str, settings: Mapping[str, Any]) -> Any:
    """Build a module from its name and settings."""
    from sentence_transformers.sentence_transformer import modules

    kind = getattr(modules, name)
    settings = dict(settings)
    if "activation_function" in settings:
        settings["activation_function"] = getattr(nn, settings["activation_function"])()
    return kind(**settings)


def check_module(module: Any) -> None:
    """Raise an error if a module is described otherwise than ``describe_module`` does."""
    found = check_mapping(module, "a module of the embedding model", {"name", "settings"})
    if found.get("name") not in _MODULES:
        raise ValueError(
            f"the embedding model asks for the module {str(found.get('name'))[:80]!r}; allowed are "
            f"{', '.join(_MODULES)}"
        )
    for name, value in check_mapping(found.get("settings"), "a module of the embedding model").items():
        if name == "activation_function" and value not in _ACTIVATIONS:
            raise ValueError(
                f"the embedding model asks for the activation {str(value)[:80]!r}; allowed are "
                f"{', '.join(_ACTIVATIONS)}"
            )
        if is_never(name) or not is_plain(value):
            raise ValueError(
                f"a module of the embedding model has {str(value)[:80]!r} as {name!r}, which is no plain setting"
            )


def check_mapping(value: Any, what: str, allowed: set[str] | None = None) -> dict[str, Any]:
    """Raise an error if a value is no mapping, or has other keys than allowed."""
    if not isinstance(value, dict):
        raise ValueError(f"{what} is {str(value)[:80]!r}, but must be a mapping")
    unknown = sorted(value.keys() - allowed) if allowed is not None else []
    if unknown:
        raise ValueError(f"{what} has {unknown[0][:80]!r}, which save never writes; do not trust this model")
    return value


def is_never(name: Any) -> bool:
    """Whether ``save`` never writes a setting of this name."""
    return not isinstance(name, str) or name in _UNUSED_SETTINGS or bool(_NEVER_SETTINGS.fullmatch(name))


def is_plain(value: Any) -> bool:
    """Whether a setting is a number, a word, or lists and mappings of these; no path, no address."""
    if isinstance(value, str):
        return bool(_PLAIN_TEXT.fullmatch(value)) and ".." not in value
    if value is None or isinstance(value, bool):
        return True
    if isinstance(value, int | float):
        return math.isfinite(value) and abs(value) < 2**63
    if isinstance(value, Mapping):
        return all(is_plain(key) and not is_never(key) and is_plain(item) for key, item in value.items())
    return isinstance(value, list | tuple) and all(map(is_plain, value))
