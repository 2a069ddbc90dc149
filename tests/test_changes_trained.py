"""Classes come and go with a trainer: the matrices of old classes stay, and those of changed ones alone are trained."""

import numpy as np
import pytest
from changes_helpers import classifier, digits, kept_of
from matrix_helpers import matrices_of

import skellipsoid
from skellipsoid import EliDecide, add_classes, merge_classes, remove_classes


def trained(**settings):
    """Keep the samples of a training that takes a fixed number of epochs."""
    return classifier(trainer=EliDecide(n_iter_no_change=50, **{"max_iter": 5, **settings}))


def matrices(clf, labels):
    """Trained matrices of some classes."""
    return matrices_of(clf)[np.searchsorted(clf.classes_, labels)]


class TestTraining:
    """With a trainer the matrices of old classes stay, and those of changed classes alone are trained."""

    def test_add_trains_new_classes_and_what_was_held_out_stays_so(self):
        X, y = digits()
        old = trained().fit(X[y < 8], y[y < 8])
        found = add_classes(old, X[y >= 8], y[y >= 8])
        np.testing.assert_array_equal(matrices(found, range(8)), matrices_of(old))
        np.testing.assert_allclose(found.radii_[:8], old.radii_, rtol=1e-5)
        assert found.n_iter_ == 5
        assert np.mean(found.predict_known(X[y >= 8]) == y[y >= 8]) > 0.8
        assert np.mean(found.predict(X[y >= 8]) == -1) < 0.7
        assert np.mean(old.predict(X[y < 8]) == found.predict(X[y < 8])) > 0.95
        kept, before = kept_of(found), kept_of(old)
        held = kept.validates == 1
        np.testing.assert_allclose(kept.rows[held & (kept.classes < 8)], before.rows[before.validates == 1], atol=1e-4)
        assert len(found.held_out_scores_) == held.sum() == pytest.approx(0.1 * len(y), abs=10)

    def test_a_new_matrix_is_that_of_a_training_on_all_samples(self):
        # All samples of the new class were validation samples or training samples of the whole training, too.
        X, y = digits()
        held = np.arange(len(y)) % 5 == 0
        whole = trained().fit(X[~held], y[~held], X_val=X[held], y_val=y[held])
        without = remove_classes(whole, [8])
        mine = y == 8
        again = add_classes(without, X[mine & ~held], y[mine & ~held])
        assert again.trainer.max_iter == 5
        assert not np.array_equal(matrices(again, [8]), matrices(whole, [8]))  # other batches, a share held out
        difference = np.linalg.norm(matrices(again, [8]) - matrices(whole, [8]))
        assert difference < 0.5 * np.linalg.norm(matrices(whole, [8]) - np.eye(64))

    def test_removed_and_renamed_classes_train_nothing(self):
        X, y = digits()
        old = trained().fit(X, y)
        found = merge_classes(remove_classes(old, [0, 4]), {77: [3]})
        np.testing.assert_array_equal(matrices(found, [1, 2, 5, 6, 7, 8, 9]), matrices(old, [1, 2, 5, 6, 7, 8, 9]))
        np.testing.assert_array_equal(matrices(found, [77]), matrices(old, [3]))
        assert found.loss_curve_ == old.loss_curve_
        assert found.validation_scores_ == old.validation_scores_

    def test_merged_and_updated_classes_alone_are_trained(self):
        X, y = digits()
        later = (y == 5) & (np.arange(len(y)) % 2 == 0)
        old = trained().fit(X[~later], y[~later])
        found = add_classes(merge_classes(old, {77: [0, 1]}), X[later], y[later])
        same = [2, 3, 4, 6, 7, 8, 9]
        np.testing.assert_array_equal(matrices(found, same), matrices(old, same))
        assert not np.array_equal(matrices(found, [5]), matrices(old, [5]))
        assert not np.array_equal(matrices(found, [77]), matrices(old, [0]))

    def test_saved_and_the_other_kind_of_fit(self, tmp_path):
        X, y = digits()
        old = trained(max_iter=2).fit(X[y < 8], y[y < 8])
        skellipsoid.save(old, tmp_path / "model")
        wanted = add_classes(old, X[y >= 8], y[y >= 8])
        found = add_classes(skellipsoid.load(tmp_path / "model"), X[y >= 8], y[y >= 8])
        np.testing.assert_array_equal(found.score_samples(X), wanted.score_samples(X))
        # Whoever changes the trainer gets a whole fit of that kind.
        closed = remove_classes(old.set_params(trainer=None), [0])
        assert closed.shared_share_ is not None
        again = remove_classes(closed.set_params(trainer=EliDecide(max_iter=1)), [1])
        assert again.shared_share_ is None
        assert again.n_iter_ == 1
