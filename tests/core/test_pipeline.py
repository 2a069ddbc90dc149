"""The main job: raw text in, labels out, open ones included, through a Pipeline and what scikit-learn does with it."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder
from skellipsoid.datasets import load_assistant_intents


class CountingEncoder(SupConTextEncoder):
    """Notes every fit."""

    fits: list = []  # noqa: RUF012 - shared by all copies, on purpose

    def _fit(self, X, *more):
        self.fits.append(len(X))
        return super()._fit(X, *more)


@pytest.fixture
def n_fits():
    """How often an encoder was fitted since the test began."""
    CountingEncoder.fits.clear()
    return lambda: len(CountingEncoder.fits)


def make(model, memory=None, encoder=SupConTextEncoder, **parameters):
    # So small a model must learn its words: a head on it tells little apart.
    settings = {"finetune": "full", "temperature": 0.3, "learning_rate": 3e-3, "batch_size": 16, "max_iter": 20}
    enc = encoder(model, random_state=0, **settings)
    # The texts are by one hand, and so few that the model of users' messages accepts them all.
    clf = EllipsoidOpenSetClassifier(open_share=(0.25, 0.75), known_shift=0, random_state=0)
    return Pipeline([("enc", enc), ("clf", clf)], memory=memory).set_params(**parameters)


@pytest.fixture(scope="module")
def fitted(tiny_model, texts, labels):
    return make(tiny_model).fit(texts, labels)


@pytest.fixture(scope="module")
def queries(texts, open_texts):
    return [*texts, *open_texts]


def test_real_open_texts_become_no_class(tiny_model, texts, labels, queries, open_texts):
    pipeline = make(tiny_model).fit(queries, [*labels, *["-1"] * 6])
    assert pipeline.classes_.tolist() == sorted(set(labels))
    assert pipeline["enc"].classes_.tolist() == sorted(set(labels))
    assert "-1" in pipeline.predict(open_texts)
    renamed = make(tiny_model, enc__open_label="other", clf__open_label="other").fit(queries, [*labels, *["other"] * 6])
    np.testing.assert_array_equal(renamed.predict(queries) == "other", pipeline.predict(queries) == "-1")


# Search and cross-validation


@pytest.mark.slow
@pytest.mark.parametrize("cached", [False, True])
def test_grid_search_fits_the_encoder_once_per_fold_if_there_is_a_memory(
    tiny_model, texts, labels, tmp_path, n_fits, cached
):
    pipeline = make(tiny_model, str(tmp_path) if cached else None, CountingEncoder, enc__max_iter=3)
    grid = {"clf__beta": [0.1, 0.5], "clf__alpha": [0.3, 0.6, 1.0]}
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(texts, labels)
    # Two folds of six settings, and the best once more on everything.
    assert n_fits() == (2 + 1 if cached else 2 * 6 + 1)
    assert len(search.cv_results_["params"]) == 6
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.predict(texts).shape == (32,)
    assert search.best_estimator_["clf"].beta == search.best_params_["clf__beta"]


# The real model


def test_the_real_model_tells_known_requests_from_open_ones(minilm):
    train, test = load_assistant_intents(subset="train"), load_assistant_intents(subset="test")
    some = train.target_names[1::4]
    of_train, of_test = np.isin(train.target, some), np.isin(test.target, some)
    far = test.open_kind == "far"
    pipeline = Pipeline(
        [
            ("enc", SupConTextEncoder(minilm, finetune="head", random_state=0)),
            ("clf", EllipsoidOpenSetClassifier(random_state=0)),
        ]
    )
    pipeline.fit(train.data[of_train], train.target[of_train])
    answers = pipeline.predict(np.concatenate([test.data[of_test], test.data[far]]))
    known, open_ = answers[: of_test.sum()], answers[of_test.sum() :]
    assert len(some) == 7
    # Guessing gives one in seven.
    assert (known == test.target[of_test]).mean() > 0.6
    assert (open_ == "-1").mean() > 0.75
    # Closed-set, before anything is rejected.
    features = pipeline["enc"].transform(test.data[of_test])
    assert (pipeline["clf"].predict_known(features) == test.target[of_test]).mean() > 0.9
