"""Text encoders of the literature: what their features are, what each parameter does, and how they travel."""

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from skellipsoid import SupConTextEncoder, load, save
from skellipsoid.baselines import LOFOpenSetClassifier
from skellipsoid_bench.literature import (
    ADBClassifier,
    CLABClassifier,
    CLABTextEncoder,
    CrossEntropyTextEncoder,
    DAADBTextEncoder,
    KNNCLTextEncoder,
    MOGBClassifier,
    MOGBTextEncoder,
)

ENCODERS = [CLABTextEncoder, CrossEntropyTextEncoder, DAADBTextEncoder, KNNCLTextEncoder, MOGBTextEncoder]
PIPELINES = [
    (CrossEntropyTextEncoder, ADBClassifier),
    (DAADBTextEncoder, ADBClassifier),
    (KNNCLTextEncoder, LOFOpenSetClassifier),
    (CLABTextEncoder, CLABClassifier),
    (MOGBTextEncoder, MOGBClassifier),
]


def make(kind, model, **parameters):
    """An encoder that learns quickly; every parameter can be changed."""
    chosen = {"finetune": "head", "learning_rate": 2e-2, "batch_size": 16, "max_iter": 8, "early_stopping": False}
    return kind(model, **chosen | {"random_state": 0} | parameters)


@pytest.fixture(scope="module", params=ENCODERS, ids=lambda kind: kind.__name__)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def fitted(kind, tiny_model, texts, labels):
    return make(kind, tiny_model).fit(texts, labels)


# What the features are


def test_features_are_the_activated_layer_of_the_mean_token_vector(fitted, kind, tiny_model, texts):
    pooled = SupConTextEncoder(tiny_model, finetune="none", layers="last", normalize=False).fit_transform(texts)
    layer = pooled @ fitted.weight_.T + fitted.bias_
    expected = np.tanh(layer) if kind is KNNCLTextEncoder else np.maximum(layer, 0)
    if kind is CLABTextEncoder:
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    features = fitted.transform(texts)
    np.testing.assert_allclose(features, expected, atol=1e-4)
    assert features.dtype == np.float32
    assert fitted.get_feature_names_out().tolist() == [f"{kind.__name__.lower()}{i}" for i in range(32)]


# What each parameter does

CHANGES = [
    (DAADBTextEncoder, "scale", 8.0),
    (CLABTextEncoder, "contrastive_weight", 0.5),
    (CLABTextEncoder, "n_positives", 2),
    (CLABTextEncoder, "n_negatives", 3),
    (KNNCLTextEncoder, "contrastive_weight", 0.5),
    (KNNCLTextEncoder, "temperature", 0.1),
    (KNNCLTextEncoder, "n_neighbors", 1),
    (KNNCLTextEncoder, "n_positives", 1),
    (KNNCLTextEncoder, "queue_size", 20),
    (MOGBTextEncoder, "ball_learning_rate", 1e-2),
    (MOGBTextEncoder, "split_purity", 0.3),
    (MOGBTextEncoder, "split_size", 31),
    (MOGBTextEncoder, "min_purity", 0.2),
]


@pytest.mark.parametrize(("kind", "name", "value"), CHANGES, ids=str)
def test_every_parameter_acts(kind, tiny_model, texts, labels, name, value):
    texts, labels = [*texts, texts[0]], [*labels, labels[0]]
    # Balls of all texts at the start are pure only if they are divided often.
    first = {"min_purity": 0.2, "split_purity": 0.9} if name in ("split_purity", "split_size") else {}
    plain = make(kind, tiny_model, max_iter=2, **first).fit(texts, labels)
    changed = make(kind, tiny_model, **{"max_iter": 2, **first, name: value}).fit(texts, labels)
    assert not np.array_equal(changed.weight_, plain.weight_)


# How a fitted encoder travels


@pytest.mark.parametrize(("encoder", "classifier"), PIPELINES)
def test_the_published_pairs_work_in_a_pipeline(encoder, classifier, tiny_model, texts, labels, open_texts, tmp_path):
    made = {MOGBClassifier: {"min_size": 1, "split_size": 1}, LOFOpenSetClassifier: {"scope": "all", "n_neighbors": 5}}
    pipeline = make_pipeline(make(encoder, tiny_model, max_iter=30), classifier(**made.get(classifier, {})))
    pipeline.fit(pd.Series(texts), labels)
    assert {*pipeline.predict(texts)} <= {"-1", *labels}
    # The tiny text model is random; one of four by chance.
    assert (pipeline[-1].predict_known(pipeline[:-1].transform(texts)) == labels).mean() > 0.4
    save(pipeline, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.predict([*texts, *open_texts]).tolist() == pipeline.predict([*texts, *open_texts]).tolist()
    assert (tmp_path / "model/README.md").read_text().startswith("# Open-set text classifier")


def test_fit_transform_gives_the_features_of_transform(kind, tiny_model, texts, labels):
    encoder = make(kind, tiny_model, max_iter=2)
    features = encoder.fit_transform(texts, labels)
    np.testing.assert_allclose(features, encoder.transform(texts), atol=1e-6)
    np.testing.assert_allclose(features, make(kind, tiny_model, max_iter=2).fit(texts, labels).transform(texts))
    with pytest.raises(TypeError, match=f"{kind.__name__}.fit_transform takes X, y, groups, X_val and y_val, got"):
        encoder.fit_transform(texts, labels, weights=1)
