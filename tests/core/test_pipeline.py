"""The main job: raw text in, labels out, open ones included, through a Pipeline and what scikit-learn does with it."""

import numpy as np
from sklearn.pipeline import Pipeline

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder


def make(model, **parameters):
    # So small a model must learn its words: a head on it tells little apart.
    settings = {"finetune": "full", "temperature": 0.3, "learning_rate": 3e-3, "batch_size": 16, "max_iter": 20}
    enc = SupConTextEncoder(model, random_state=0, **settings)
    # The texts are by one hand, and so few that the model of users' messages accepts them all.
    clf = EllipsoidOpenSetClassifier(open_share=(0.25, 0.75), known_shift=0, random_state=0)
    return Pipeline([("enc", enc), ("clf", clf)]).set_params(**parameters)


def test_real_open_texts_become_no_class(tiny_model, texts, labels, open_texts):
    queries = [*texts, *open_texts]
    pipeline = make(tiny_model).fit(queries, [*labels, *["-1"] * 6])
    assert pipeline.classes_.tolist() == sorted(set(labels))
    assert pipeline["enc"].classes_.tolist() == sorted(set(labels))
    assert "-1" in pipeline.predict(open_texts)
    renamed = make(tiny_model, enc__open_label="other", clf__open_label="other").fit(queries, [*labels, *["other"] * 6])
    np.testing.assert_array_equal(renamed.predict(queries) == "other", pipeline.predict(queries) == "-1")
