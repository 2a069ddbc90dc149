"""Projections that were fitted to the training samples: they show, and what is left out is left out of them, too."""

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA, FastICA, KernelPCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer, StandardScaler

from skellipsoid import EllipsoidOpenSetClassifier, add_classes, check_training_features, remove_classes
from skellipsoid._ellipsoid.math.projected import leave_out_folds
from skellipsoid._samples.projections import Projection, find_projection
from skellipsoid._samples.samples import Samples
from skellipsoid.persistence import load, save

SHOWN = {
    PCA(0.9): Projection.CENTRED,
    PCA(20, svd_solver="randomized", random_state=0): Projection.CENTRED,
    PCA(2): Projection.CENTRED,
    KernelPCA(20, kernel="rbf"): Projection.CENTRED,
    TruncatedSVD(20, random_state=0): Projection.NOT_CENTRED,
    PCA(20, whiten=True): Projection.WHITENED,
    FastICA(10, whiten="unit-variance", tol=1.0, random_state=0): Projection.WHITENED,
    LinearDiscriminantAnalysis(n_components=3): Projection.NONE,
    LinearDiscriminantAnalysis(solver="eigen", shrinkage=0.3): Projection.NONE,
    StandardScaler(): Projection.NONE,
    QuantileTransformer(n_quantiles=50): Projection.NONE,
}


def draw(classes, n_samples, rng, n_features=200):
    """Classes whose means differ in any direction, those of a new class in others: a projection does not keep them."""
    deviations = np.arange(1, n_features + 1) ** -0.5
    means = 0.5 * np.random.default_rng(0).normal(size=(16, n_features)) * deviations
    y = np.repeat(classes, n_samples)
    return means[y] + rng.normal(size=(len(y), n_features)) * deviations + 1, y


@pytest.fixture(scope="module")
def data():
    """Samples of eight classes, and new ones of these and of eight others."""
    rng = np.random.default_rng(1)
    X, y = draw(range(8), 24, rng)
    new, truth = draw(range(16), 20, rng)
    return X, y, new, np.where(truth < 8, truth, -1)


@pytest.mark.parametrize("transformer", SHOWN, ids=lambda transformer: type(transformer).__name__)
def test_what_was_fitted_to_the_samples_shows(transformer, data):
    X, y, *_ = data
    for features in (X, X.astype(np.float32)):
        assert find_projection(transformer.fit_transform(features, y), y) == SHOWN[transformer]


@pytest.mark.parametrize("transformer", [PCA(0.95), TruncatedSVD(64, random_state=0)], ids=["PCA", "SVD"])
def test_most_open_samples_are_noticed_behind_a_projection(transformer, data):
    X, y, new, truth = data
    answers = make_pipeline(transformer, EllipsoidOpenSetClassifier(random_state=0)).fit(X, y).predict(new)
    assert np.mean(answers[truth == -1] == -1) > 0.8  # with samples left out of the shapes alone 0.3
    assert np.mean(answers[truth >= 0] == -1) < 0.1


def test_folds_are_left_out_of_means_shapes_and_projection(data):
    X, y, *_ = data
    features = PCA(0.95).fit_transform(X)
    samples = Samples.of(torch.from_numpy(features), torch.from_numpy(y))
    folds = leave_out_folds(samples, torch.empty(0, features.shape[1]), 0, Projection.CENTRED)
    assert sum(len(fold.tested) for fold in folds) == len(X)
    assert sorted(np.concatenate([np.setdiff1d(y, fold.classes) for fold in folds])) == list(range(8))
    for fold in folds:
        known = fold.prepared.maker.samples
        # Coordinates along axes of the others' covariance, of those that vary as much as the last component of all.
        variances = torch.cov(known.features.T.double(), correction=0).diagonal()
        assert len(variances) < features.shape[1]
        assert variances.min() >= 0.999 * features.var(axis=0).min()
        assert fold.tested.features.shape[1] == len(variances)
        # The samples that a fold tests, and those of its classes, have no part in it.
        assert len(known) == np.isin(y, fold.classes).sum() - np.isin(fold.tested.classes, fold.classes).sum()


def test_changes_and_files_keep_it(data, tmp_path):
    X, y, new, _ = data
    features = (pca := PCA(0.95)).fit_transform(X)
    classifier = EllipsoidOpenSetClassifier(random_state=0).fit(features, y)
    save(classifier, tmp_path / "model")
    found = load(tmp_path / "model")
    np.testing.assert_array_equal(found.predict(pca.transform(new)), classifier.predict(pca.transform(new)))
    before = np.mean(classifier.held_out_.score[~classifier.held_out_.is_open] < 0)
    removed = remove_classes(found, [7])
    added = add_classes(removed, features[y == 7], y[y == 7])
    for changed in (removed, added):  # the size, and the held-out samples, are those of folds
        held_out = changed.held_out_
        assert abs(np.mean(held_out.score[~held_out.is_open] < 0) - before) < 0.05
    answers = added.predict(pca.transform(new))
    assert (answers == classifier.predict(pca.transform(new))).mean() > 0.97


def test_whitened_columns_warn_and_all_projections_are_findings(data):
    X, y, *_ = data
    whitened = PCA(20, whiten=True).fit_transform(X)
    with pytest.warns(UserWarning, match="equal variances.*TunedOperatingPointCV around the Pipeline"):
        EllipsoidOpenSetClassifier(random_state=0).fit(whitened, y)
    for features in (whitened, PCA(20).fit_transform(X)):
        assert check_training_features(features, y).kind.tolist() == ["projected_columns"]


def test_word_counts_warn_with_what_is_expected_and_lose_words_in_folds():
    """Each class has words of its own beside common ones; those of a new class are no column."""
    rng = np.random.default_rng(0)
    words = [np.concatenate([np.arange(30), 30 + 40 * k + np.arange(40)]) for k in range(12)]
    y = np.repeat(np.arange(12), 24)
    counts = np.zeros((len(y), 30 + 40 * 12))
    for row, k in enumerate(y):
        counts[row, rng.choice(words[k], 6, replace=False)] = 1
    X = counts / np.linalg.norm(counts, axis=1, keepdims=True)
    known = y < 8
    vocabulary = X[known].any(axis=0)
    message = r"0 in most samples.* of 100 samples of held-out classes, \d+ are detected.*Word counts"
    with pytest.warns(UserWarning, match=message):
        classifier = EllipsoidOpenSetClassifier(random_state=0).fit(X[known][:, vocabulary], y[known])
    assert classifier.column_units_ is None
    held_out = classifier.held_out_
    detected = np.mean(held_out.score[held_out.is_open] < 0)
    new = X[~known][:, vocabulary]
    lengths = np.linalg.norm(new, axis=1, keepdims=True)
    new = np.divide(new, lengths, out=new, where=lengths > 0)
    assert np.mean(classifier.predict(new) == -1) == pytest.approx(detected, abs=0.25)
