"""Repeated and grouped texts, from raw text to labels: with duplicates a fit is that of each text once."""

import numpy as np
import pytest
from sklearn.pipeline import Pipeline

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder
from skellipsoid.datasets import load_assistant_intents
from skellipsoid.metrics import open_set_f1_score

MODES = ["head", "full", "none"]


def make(model, finetune="head", **parameters):
    settings = {"temperature": 0.3, "batch_size": 16, "max_iter": 4, "random_state": 0}
    settings["learning_rate"] = 2e-2 if finetune == "head" else 3e-3
    return SupConTextEncoder(model, finetune=finetune, **settings | parameters)


@pytest.mark.parametrize("finetune", MODES)
def test_every_text_twice_gives_the_features_of_each_text_once(tiny_model, texts, labels, finetune):
    once = make(tiny_model, finetune).fit_transform(texts, labels)
    for repeated, target in (
        ([*texts, *texts], [*labels, *labels]),
        (np.repeat(texts, 2).tolist(), np.repeat(labels, 2)),
        ([*texts, *(f" {text.upper()} " for text in texts)], [*labels, *labels]),
    ):
        encoder = make(tiny_model, finetune)
        features = encoder.fit_transform(repeated, target)
        first = [repeated.index(text) for text in texts]
        np.testing.assert_allclose(features[first], once, atol=1e-6)
        others = [i for i in range(len(repeated)) if i not in first]
        np.testing.assert_allclose(features[others], once, atol=1e-6)
        if finetune != "none":
            assert len(np.unique(encoder.groups_)) == len(texts)
            np.testing.assert_array_equal(encoder.groups_[first], encoder.groups_[others])


@pytest.mark.parametrize("finetune", ["head", "full"])
def test_the_encoder_learns_from_one_of_equal_texts_unless_each_counts(tiny_model, texts, labels, finetune):
    repeated, target = [*texts, *texts[:8], *texts[:8]], [*labels, *labels[:8], *labels[:8]]
    weights = {
        duplicates: make(tiny_model, finetune, duplicates=duplicates).fit(repeated, target).weight_
        for duplicates in ("once", "each", "off")
    }
    np.testing.assert_array_equal(weights["once"], make(tiny_model, finetune).fit(texts, labels).weight_)
    np.testing.assert_array_equal(weights["each"], weights["off"])
    assert abs(weights["each"] - weights["once"]).max() > 1e-3


@pytest.mark.parametrize("duplicates", ["once", "off"])
def test_near_duplicates_are_found_by_their_embeddings(minilm, duplicates):
    train = load_assistant_intents(subset="train")
    rows = np.isin(train.target, train.target_names[:4])
    texts, intents = train.data[rows], train.target[rows]
    logged, target = [*texts, *(f"{text} please" for text in texts)], [*intents, *intents]
    found = make(minilm, max_iter=1, duplicates=duplicates).fit(logged, target).groups_
    linked = found[: len(texts)] == found[len(texts) :]
    assert linked.mean() > 0.9 if duplicates == "once" else not linked.any()
    once = make(minilm, max_iter=1, duplicates=duplicates).fit(texts, intents).groups_
    np.testing.assert_array_equal(once, np.arange(len(texts)))


@pytest.mark.slow
def test_a_log_with_repeated_messages_is_as_good_as_each_text_once(minilm):
    train, dev = (load_assistant_intents(subset=subset) for subset in ("train", "dev"))
    some = train.target_names[::2]
    rows = np.isin(train.target, some)
    texts, intents = train.data[rows], train.target[rows]

    def f1(texts, intents):
        encoder, classifier = SupConTextEncoder(minilm, finetune="none"), EllipsoidOpenSetClassifier()
        pipe = Pipeline([("enc", encoder), ("clf", classifier)])
        pipe.set_params(
            enc__random_state=0,
            clf__random_state=0,
        )
        answers = pipe.fit(texts, intents).predict(dev.data)
        truth = np.where(np.isin(dev.target, some), dev.target, "-1")
        return open_set_f1_score(truth, answers, labels=pipe.classes_, zero_division=0)

    once, twice = f1(texts, intents), f1([*texts, *texts], [*intents, *intents])
    assert twice == pytest.approx(once, abs=1e-3)
    assert f1([*texts, *(f"{text} please" for text in texts)], [*intents, *intents]) > once - 0.03
    shares = 1 / np.arange(1, len(texts) + 1)
    losses = []
    for seed in range(3):  # of one draw alone the difference varies by 0.03
        rng = np.random.default_rng(seed)
        drawn = rng.choice(rng.permutation(len(texts)), 1500, p=shares / shares.sum())
        distinct = np.unique(drawn)
        losses.append(f1(texts[distinct], intents[distinct]) - f1(texts[drawn], intents[drawn]))
    assert np.mean(losses) < 0.03


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([0, 1], r"groups has the shape \(2,\), but must hold one group for each of the 32 rows"),
        ([None] * 32, "groups has missing values in rows 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 22 more"),
    ],
)
def test_groups_that_do_not_fit_are_refused_and_the_earlier_fit_stays(tiny_model, texts, labels, groups, message):
    encoder = make(tiny_model).fit(texts, labels)
    before = encoder.transform(texts)
    with pytest.raises(ValueError, match=message):
        encoder.fit(texts, labels, groups=groups)
    np.testing.assert_array_equal(encoder.transform(texts), before)
