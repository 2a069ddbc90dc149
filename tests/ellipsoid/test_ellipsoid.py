"""The ellipsoid classifier: what it learns, its parameters, and the data that leave it little to learn from."""

import time
import warnings
import zipfile
from pathlib import Path

import joblib
import numpy as np
import pytest
import torch
from matrix_helpers import matrices_of
from open_set_data import gaussians
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils._param_validation import InvalidParameterError

from skellipsoid import EliDecide, EllipsoidOpenSetClassifier, explain
from skellipsoid._ellipsoid import methods
from skellipsoid._ellipsoid.math import closed_form
from skellipsoid._torch import machine
from skellipsoid.datasets import make_open_blobs

#: The paper's training, a short one.
PAPER = {"trainer": EliDecide(max_iter=10)}


def make(**parameters):
    return EllipsoidOpenSetClassifier(**{"random_state": 0, **parameters})


# What is learned.


def test_fitted_attributes():
    X, y = gaussians()
    clf = make().fit(X, y)
    history = ("n_iter_", "loss_curve_", "validation_scores_")
    assert not any(hasattr(clf, name) for name in history)  # nothing is trained
    assert clf.between_share_ is None  # three classes are too few for a background
    many = make().fit(*gaussians(5))
    assert 0 < many.between_share_ < 1
    learned = make(**PAPER).fit(X, y)
    assert learned.n_iter_ == len(learned.loss_curve_) == len(learned.validation_scores_) <= 10
    again = clone(learned).fit(X, y).set_params(trainer=None).fit(X, y)
    assert not any(hasattr(again, name) for name in history)
    assert learned.within_covariance() is learned.shared_share_ is learned.spherical_share_ is None
    np.testing.assert_array_equal(learned.centers_, learned.centroids_)


@pytest.mark.parametrize("n_features", [3, 60, 300])  # fewer and more than there are rows
def test_the_shared_covariance_is_the_pooled_one_shrunk_to_a_sphere(n_features):
    X, y = gaussians(5, rows=12, n_features=n_features, distance=2)
    X *= np.linspace(1, 9, n_features)
    clf = make().fit(X, y)
    deviations = X - np.array([X[y == k].mean(axis=0) for k in range(5)])[y]
    pooled = deviations.T @ deviations / (60 - 5)
    share = clf.spherical_share_
    expected = (1 - share) * pooled + share * np.diag(np.diag(pooled))  # a sphere in the units of the columns
    np.testing.assert_allclose(clf.within_covariance(), expected, rtol=1e-4, atol=1e-5 * np.trace(pooled) / n_features)
    # Off the span of the rows there is the sphere alone.
    if n_features == 300:
        of_units = clf.within_covariance() / np.outer(clf.column_units_, clf.column_units_)
        sphere = np.mean(np.diag(pooled) / clf.column_units_**2)
        assert np.linalg.eigvalsh(of_units)[0] == pytest.approx(share * sphere, rel=1e-3)


# Parameters.


@pytest.mark.parametrize(
    ("name", "value"), [("alpha", 0), ("trainer", EliDecide), ("outliers", "ignore"), ("device", None)]
)
def test_a_parameter_out_of_its_range_is_named(name, value):
    with pytest.raises(InvalidParameterError, match=f"The '{name}' parameter of EllipsoidOpenSetClassifier must be"):
        make(**{name: value}).fit(*gaussians())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_decisions_agree_between_cpu_and_cuda():
    X, y = gaussians(5, n_features=20, distance=3)
    cpu, cuda = (make(device=device).fit(X, y) for device in ("cpu", "cuda"))
    np.testing.assert_allclose(cuda.class_margins(X), cpu.class_margins(X), atol=1e-3)
    clear = abs(cpu.score_samples(X)) > 1e-3
    np.testing.assert_array_equal(cuda.predict(X)[clear], cpu.predict(X)[clear])
    cuda.set_params(device="cpu")
    np.testing.assert_allclose(cuda.class_margins(X), cpu.class_margins(X), atol=1e-3)


# Data that leave little to learn.


def assert_works(clf, X, y):
    """Everything is finite, and the classes know their own centroids."""
    for value in (clf.centroids_, clf.radii_, matrices_of(clf), getattr(clf, "loss_curve_", []), clf.class_margins(X)):
        assert np.isfinite(value).all()
    assert (clf.radii_ > 0).all()
    np.testing.assert_array_equal(clf.predict(clf.centroids_), np.unique(y))


@pytest.mark.parametrize("point_rows", [1, 30])
@pytest.mark.parametrize("options", [{}, PAPER], ids=["default", "paper"])
def test_a_class_that_is_one_point_takes_the_median_radius(point_rows, options):
    X, y = gaussians(4)
    X, y = np.append(X, np.full((point_rows, 3), 40.0), axis=0), np.append(y, np.full(point_rows, 8))
    with pytest.warns(UserWarning, match="duplicates of one: 8; their") as caught:
        clf = make(**options).fit(X, y)
    caught = [warning for warning in caught if warning.category is not ConvergenceWarning]  # of ten epochs
    assert len(caught) == 1
    assert caught[0].filename == __file__  # it points at the caller's line
    assert_works(clf, X, y)
    assert clf.radii_[4] == pytest.approx(np.median(clf.radii_[:4]), rel=1e-6)
    assert clf.predict([[40.0] * 3]) == 8
    shapes = np.einsum("kij,kil->kjl", matrices_of(clf), matrices_of(clf)).astype(float)
    if options:
        np.testing.assert_array_equal(matrices_of(clf)[4], np.eye(3))
        return
    # What all classes share, as large as the others.
    volumes = np.linalg.det(shapes) ** (-1 / 6)
    assert 0.7 < volumes[4] / np.exp(np.log(volumes[:4]).mean()) < 1.4


@pytest.mark.parametrize(
    "wrap",
    [lambda clf: make_pipeline(StandardScaler(), clf), lambda clf: GridSearchCV(clf, {"beta": [0.4]}, cv=2)],
    ids=["pipeline", "search"],
)
def test_a_warning_points_to_the_line_of_the_user_through_wrappers(wrap):
    X, y = gaussians(3)
    with pytest.warns(UserWarning, match="duplicates of one: 7; their") as caught:
        wrap(make()).fit(np.append(X, np.ones((8, 3)), axis=0), np.append(y, np.full(8, 7)))
    assert {warning.filename for warning in caught} == {__file__}


@pytest.mark.parametrize(
    ("sizes", "named", "result"),
    [
        ([30, 5, 30, 9], "2 of 4 classes .*(1, 3; the smallest has 5)", "many of their new samples will be rejected"),
        ([2] * 12, "12 of 12 classes .*0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more; the smallest has 2", "open samples"),
    ],
)
def test_one_warning_names_classes_of_few_samples(sizes, named, result):
    y = np.repeat(np.arange(len(sizes)), sizes)
    X = np.random.default_rng(0).normal(size=(len(y), 4)) + 7 * y[:, np.newaxis]
    with pytest.warns(UserWarning, match="fewer than 10 different samples") as caught:
        make().fit(X, y)
    message = str(caught[0].message)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert all(part in message for part in named.split(".*"))
    assert result in message


@pytest.mark.parametrize("options", [{}, PAPER], ids=["default", "paper"])
def test_more_features_than_rows(options):
    X, y = gaussians(3, rows=8, n_features=100, distance=3)
    clf = make(**options).fit(X, y)
    assert_works(clf, X, y)
    assert (clf.predict_known(X) == y).all()
    directions, lengths = clf.ellipsoid_axes(0)
    assert directions.shape == (100, 100)
    assert np.isfinite(lengths).all()


def n_kept(folder):
    """Number of results that a memory keeps."""
    return len(list(folder.rglob("output.pkl")))


class TestMemory:
    """What does not depend on alpha and beta is computed once."""

    @pytest.fixture
    def data(self):
        rng = np.random.default_rng(0)
        y = np.repeat(np.arange(6), 30)
        X = (3 * rng.normal(size=(6, 10)))[y] + rng.normal(size=(180, 10))
        y[-10:] = -1
        return X, y, np.arange(180) // 2

    def test_a_search_finds_the_same_with_and_without_it(self, data, tmp_path):
        X, y, groups = data
        grid = [{"alpha": [0.6], "beta": [0.5]}, {"alpha": [2.0], "beta": [2.0]}]  # 2 * 2 + 1 fits
        found = []
        for memory in (None, str(tmp_path)):
            classifier = EllipsoidOpenSetClassifier(random_state=0, memory=memory)
            search = GridSearchCV(classifier, grid, cv=GroupKFold(2)).fit(X, y, groups=groups)
            found.append((search.cv_results_["mean_test_score"], search.best_estimator_.score_samples(X)))
        np.testing.assert_array_equal(found[0][0], found[1][0])
        np.testing.assert_array_equal(found[0][1], found[1][1])
        assert n_kept(tmp_path) == 2 + 1

    @pytest.mark.parametrize("changed", [methods._SOURCES[-1], "numpy"])
    def test_after_a_change_of_the_code_it_is_computed_anew(self, data, tmp_path, monkeypatch, changed):
        X, y, _ = data
        classifier = EllipsoidOpenSetClassifier(random_state=0, memory=joblib.Memory(tmp_path / "cache", verbose=0))
        sources = methods._sources

        def changed_sources(folder, name):
            """One comment more in one file of a folder."""
            found = [*sources(folder, name)]
            return [(found[0][0], found[0][1] + b"#"), *found[1:]] if name == changed else found

        try:
            for _ in range(2):
                methods._made_by.cache_clear()
                classifier.fit(X, y)
            assert n_kept(tmp_path) == 1
            methods._made_by.cache_clear()
            monkeypatch.setattr(methods, "_sources", changed_sources)
            if changed == "numpy":
                monkeypatch.setattr(np, "__version__", "0")
            classifier.fit(X, y)
            assert n_kept(tmp_path) == 2
        finally:
            methods._made_by.cache_clear()

    def test_sources_are_found_in_an_archive(self, tmp_path):
        found = [*methods._sources(Path(methods.__file__).parent, "_ellipsoid")]
        assert {"_ellipsoid/methods.py", "_ellipsoid/math/closed_form.py"} <= {name for name, _ in found}
        with zipfile.ZipFile(tmp_path / "package.zip", "w") as archive:
            for name, content in found:
                archive.writestr(name, content)
        zipped = [*methods._sources(zipfile.Path(tmp_path / "package.zip", "_ellipsoid/"), "_ellipsoid")]
        assert zipped == found

    def test_a_damaged_entry_shows_no_samples(self, data, tmp_path, capsys, caplog):
        X, y, _ = data
        classifier = EllipsoidOpenSetClassifier(random_state=0, memory=joblib.Memory(tmp_path, verbose=0)).fit(X, y)
        expected = classifier.score_samples(X)
        for path in tmp_path.rglob("output.pkl"):
            path.write_bytes(b"damaged")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            np.testing.assert_array_equal(classifier.fit(X, y).score_samples(X), expected)
        shown = "".join([*capsys.readouterr(), caplog.text, *(str(each.message) for each in caught)])
        assert "TrainingSamples(170 samples of 10 features)" in shown
        assert "array(" not in shown


@pytest.mark.parametrize("parameters", [{}, PAPER])
def test_a_fit_that_needs_more_memory_than_there_is_does_not_begin(parameters, this_machine, tmp_path, monkeypatch):
    X, y = gaussians(rows=200, n_features=50)
    monkeypatch.setattr(machine, "_MEMORY", tmp_path / "meminfo")
    monkeypatch.setattr(machine, "_CONTAINER", tmp_path)
    classifier = make(device="cpu", **parameters)
    for kilobytes, sentence in ((100, r"at least 0\.0 GB are needed, and 0\.0 GB are free; reduce"), (10**6, None)):
        (tmp_path / "meminfo").write_text(f"MemTotal: {10**7} kB\nMemAvailable: {kilobytes} kB\n")
        if sentence is None:
            classifier.fit(X, y)
        else:
            with pytest.raises(MemoryError, match=sentence):
                classifier.fit(X, y)
            assert not hasattr(classifier, "classes_")
    # A container has a limit of its own: what is cached of files can be given back.
    for name, content in {"max": "3000000", "current": "2990000", "stat": "anon 1\nfile 5000\nshmem 1000\n"}.items():
        (tmp_path / f"memory.{name}").write_text(content)
    assert machine.free_bytes() == 14000
    (tmp_path / "memory.max").write_text("max")
    assert machine.free_bytes() == 1024 * 10**6
    (tmp_path / "meminfo").unlink()
    assert machine.free_bytes() == np.inf


def test_of_many_samples_some_are_held_out_and_all_have_a_part_in_the_shapes(monkeypatch):
    X, y = gaussians(n_classes=8, rows=150, n_features=6, distance=3.0)
    everything = make().fit(X, y)
    monkeypatch.setattr(closed_form, "MOST_HELD_OUT", 300)
    monkeypatch.setattr(closed_form, "MOST_VALIDATION", 150)
    some = make().fit(X, y)
    assert len(everything.held_out_scores_) == 1200
    assert len(some.held_out_scores_) == 300
    np.testing.assert_allclose(some.centroids_, everything.centroids_, rtol=1e-6, atol=1e-6)
    # Of groups, whole ones are drawn: the number does not jump where there are more than so many samples.
    grouped = make().fit(X, y, groups=np.arange(1200) % 40)
    assert 270 <= len(grouped.held_out_scores_) <= 300
    # Held-out scores say what new samples have, in either case.
    new, _ = gaussians(n_classes=8, rows=150, n_features=6, distance=3.0, seed=1)
    for classifier in (everything, some):
        p_values = classifier.known_p_value(new)
        assert abs((p_values < 0.1).mean() - 0.1) < 0.04
    assert abs(some.radii_ / everything.radii_ - 1).max() < 0.1


def test_a_device_that_is_not_there_is_an_error_when_fitted_and_prediction_is_on_the_cpu():
    X, y = gaussians()
    for device in ("cuda:99", torch.device("cuda:99")):
        with pytest.raises(ValueError, match=r"cuda.*is not available on this machine; use 'auto', 'cpu' or"):
            make(device=device).fit(X, y)
    clf = make(device="cpu").fit(X, y)
    margins, answers = clf.class_margins(X), clf.predict(X)
    clf.set_params(device="cuda:99")  # as if it had been fitted on another machine
    np.testing.assert_array_equal(clf.class_margins(X), margins)
    np.testing.assert_array_equal(clf.predict(X), answers)
    assert make(device=torch.device("cpu")).fit(X, y).predict(X).tolist() == answers.tolist()


def test_matrices_that_do_not_fit_are_an_error_with_sizes_and_remedies():
    X = np.zeros((2, 6_000_000), dtype=np.float32)  # matrices of 131 TiB, more than a process can address
    with pytest.raises(MemoryError, match=r"2 classes × 6000000 × 6000000 matrices.*\(PCA\)"):
        make(**PAPER).fit(X, [0, 1])


def test_all_classes_are_degenerate():
    X = np.repeat([[0.0, 0], [4, 0], [0, 3]], 4, axis=0)
    y = np.repeat([0, 1, 2], 4)
    with pytest.warns(UserWarning, match="duplicates of one: 0, 1, 2; no other class, X_val"):
        clf = make().fit(X, y)
    assert_works(clf, X, y)
    np.testing.assert_allclose(clf.radii_, 1.5, rtol=1e-4)
    assert clf.predict([[1.4, 0], [2.6, 0], [0, 1.4], [1.4, 1.4]]).tolist() == [0, 1, 0, -1]
    # Balls, whose axes are those of the space.
    np.testing.assert_array_equal(matrices_of(clf), [np.eye(2)] * 3)
    np.testing.assert_allclose(clf.ellipsoid_axes(1)[1], [1.5, 1.5], rtol=1e-4)
    assert explain(clf, [[0.3, 0], [3, 0]], n_axes=1).nearest_class.tolist() == [0, 1]


def test_real_open_rows_bound_a_single_class():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(100, 2)), [4, 0] + rng.normal(size=(100, 2)) * 0.5])
    y = np.repeat([0, -1], 100)
    with pytest.warns(UserWarning, match="100 samples with the label -1 were read as open"):
        clf = make().fit(X, y)
    assert (clf.predict(X[:100]) == 0).mean() > 0.8
    assert (clf.predict(X[100:]) == -1).mean() > 0.8


def test_a_notebook_shows_a_model_of_many_features_at_once():
    X, y = make_open_blobs(200, 600, n_known=10, open_share=0, random_state=0)
    start = time.process_time()
    clf = EllipsoidOpenSetClassifier(random_state=0).fit(X, y)
    fitted = time.process_time()
    dir(clf)
    clf._repr_html_()
    assert time.process_time() - fitted < 0.1 * (fitted - start)


#: Where each parameter acts, by its docstring, and two values of it.
ACTING = [
    ("alpha", (0.1, 5.0), PAPER),
    ("beta", (0.1, 2.0), PAPER),
    ("duplicates", ("once", "each"), {}),
    ("outliers", ("drop", "keep"), {}),
    ("random_state", (0, 1), PAPER),
]


@pytest.mark.filterwarnings("ignore:X has outliers")
@pytest.mark.parametrize(("name", "values", "settings"), ACTING, ids=lambda value: str(value)[:20])
def test_each_parameter_acts_where_its_docstring_says_so(name, values, settings):
    X, y = gaussians(5, distance=1.5, n_features=4)
    # Some of the rows twice, and an outlier.
    X, y = np.concatenate([X, X[:30], np.full((1, 4), 1e4)]), np.concatenate([y, y[:30], [0]])
    one, other = (make(**{**settings, name: value}).fit(X, y) for value in values)
    assert (one.class_margins(X) != other.class_margins(X)).any()
