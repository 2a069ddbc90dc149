"""Small text models of the four kinds that can be exported, and exported models."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skellipsoid

CONFIGS = {
    "Bert": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64},
    "DistilBert": {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64},
    "MPNet": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64},
    "Roberta": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64},
}


@pytest.fixture(scope="session")
def build_kind(tiny_model, tmp_path_factory):
    """Build a random text model of a kind, with the tiny BERT's tokenizer: ``build_kind(name)``; gives the folder."""

    def build(kind):
        import torch
        import transformers

        tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_model)
        more = {
            "pad_token_id": 0,
            "vocab_size": len(tokenizer),
            "initializer_range": 0.2,
            "max_position_embeddings": 66,
        }
        config = getattr(transformers, f"{kind}Config")(**CONFIGS[kind] | more)
        folder = tmp_path_factory.mktemp("models") / kind
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(1)
            model = getattr(transformers, f"{kind}Model")(config)
        transformers.utils.logging.disable_progress_bar()
        try:
            model.save_pretrained(folder)
        finally:
            transformers.utils.logging.enable_progress_bar()
        tokenizer.save_pretrained(folder)
        return str(folder)

    return build


@pytest.fixture(scope="session")
def pipeline(tiny_model, texts, labels):
    """A text Pipeline with a trained head, a scaler, kept texts, and a moved operating point."""
    encoder = skellipsoid.SupConTextEncoder(
        tiny_model, finetune="head", max_iter=3, keep_texts=True, max_length=24, random_state=0
    )
    classifier = skellipsoid.EllipsoidOpenSetClassifier(random_state=0)
    pipe = make_pipeline(encoder, StandardScaler(), classifier).fit(texts, labels)
    pipe[-1].offset_, pipe[-1].class_offsets_ = -0.1, np.array([0.0, 0.2, 0.0, -0.1])
    return pipe


@pytest.fixture(scope="session")
def exported(pipeline, tmp_path_factory):
    """Folder of the exported text Pipeline."""
    folder = tmp_path_factory.mktemp("exported") / "model"
    skellipsoid.export_onnx(pipeline, folder)
    return folder
