"""Repeated and grouped texts, from raw text to labels: with duplicates a fit is that of each text once."""

import numpy as np
import pytest

from skellipsoid import SupConTextEncoder


def make(model, finetune="head", **parameters):
    settings = {"temperature": 0.3, "batch_size": 16, "max_iter": 4, "random_state": 0}
    settings["learning_rate"] = 2e-2 if finetune == "head" else 3e-3
    return SupConTextEncoder(model, finetune=finetune, **settings | parameters)


@pytest.mark.parametrize("finetune", ["head", "full", "none"])
def test_every_text_twice_gives_the_features_of_each_text_once(tiny_model, texts, labels, finetune):
    once = make(tiny_model, finetune).fit_transform(texts, labels)
    for repeated, target in (
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
