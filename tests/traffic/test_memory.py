"""Messages that were labelled open are remembered: what lies near to them loses score, and nothing else does."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from skellipsoid import EllipsoidOpenSetClassifier, add_classes, explain, learn_from_traffic, refresh
from skellipsoid._ellipsoid.changes.learned import Learned
from skellipsoid._ellipsoid.changes.remember import FEWEST_PLACES, remembered

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
#: Directions of classes, and of topics that come back and are no class; these lie beside classes.
N_CLASSES, N_TOPICS, WIDTH = 8, 3, 24


@pytest.fixture(scope="module")
def world():
    """A fitted model, a log of a thousand messages with three open topics, and its truth."""
    rng = np.random.default_rng(0)
    means = rng.normal(size=(N_CLASSES, WIDTH))
    topics = 0.8 * means[:N_TOPICS] + 0.5 * rng.normal(size=(N_TOPICS, WIDTH))
    centres = np.concatenate([means, topics])

    def draw(numbers):
        return centres[numbers] + 0.5 * rng.normal(size=(len(numbers), WIDTH))

    y = np.repeat(np.arange(N_CLASSES), 20)
    clf = EllipsoidOpenSetClassifier(random_state=0).fit(draw(y), y)
    truth = np.where(rng.random(1000) < 0.3, rng.integers(N_CLASSES, len(centres), 1000), rng.integers(8, size=1000))
    return clf, draw(truth), truth


def labelled(truth, n=80):
    labels = np.full(len(truth), None, dtype=object)
    labels[:n] = np.where(truth[:n] < N_CLASSES, truth[:n], -1)
    return labels


@pytest.fixture(scope="module")
def taught(world):
    clf, log, truth = world
    return learn_from_traffic(clf, log, labelled(truth))


def test_topics_that_come_back_are_told_from_classes_and_known_messages_stay(world, taught):
    _, log, truth = world
    new, is_known = slice(80, None), truth[80:] < N_CLASSES
    lost = explain(taught, log[new]).near_open
    scores = taught.score_samples(log[new])
    ranks = [roc_auc_score(is_known, values) for values in (scores + lost, scores)]
    assert 1 - ranks[1] < 0.9 * (1 - ranks[0])
    assert np.mean(lost[~is_known] > 0) > 0.5
    assert np.mean(lost[is_known] > 0) < 0.05
    # The margins of the ellipsoids, and the closed-set answer, are those of the shapes alone.
    margins, nearest = taught.class_margins(log[new]), taught.predict_known(log[new])
    of_nearest = margins[np.arange(len(margins)), np.searchsorted(taught.classes_, nearest)]
    np.testing.assert_allclose(of_nearest - lost, scores, atol=1e-6)


def test_known_messages_keep_their_p_values(world, taught):
    _, log, truth = world
    p_values = taught.known_p_value(log[80:][truth[80:] < N_CLASSES])
    for level in (0.05, 0.2, 0.5):
        assert np.mean(p_values <= level) < level + 0.06


def test_a_new_class_takes_what_was_remembered_of_it(world, taught):
    _, log, truth = world
    of_topic = truth == N_CLASSES
    named = np.flatnonzero(of_topic)[-30:]
    wider = add_classes(taught, log[named], np.full(30, 99))
    n_of_topic = int(of_topic[:80].sum())
    assert wider.changes_[-1]["forgotten"] == pytest.approx(n_of_topic, abs=3)
    assert len(taught._learned) - len(wider._learned) == wider.changes_[-1]["forgotten"]
    fresh = of_topic & (np.arange(len(truth)) >= 80)
    fresh[named] = False
    assert np.mean(wider.predict(log[fresh]) == 99) > 0.7
    # The topics that have no class yet are still remembered.
    assert np.mean(explain(wider, log[truth > N_CLASSES]).near_open > 0) > 0.5
    assert "forgotten" not in refresh(wider).changes_[-1]


def messages(features, is_open, gaps=np.nan):
    n = len(features)
    labels, zeros = np.where(is_open, -1, 0), np.zeros(n)
    return Learned(np.asarray(features, dtype=np.float32), labels, zeros, zeros, zeros > 0, zeros + gaps)


CLASSES, HELD_OUT = np.array([0]), np.linspace(0, 1, 101)


def test_one_pick_of_none_of_these_is_not_remembered_and_two_near_ones_are():
    one, near, far = np.array([1.0, 0.0]), np.array([1.0, 0.1]), np.array([0.0, 1.0])
    picks = {"gaps": 0.5}
    assert remembered(messages([one], [True], **picks), CLASSES, HELD_OUT) is None
    assert remembered(messages([one, far], [True, True], **picks), CLASSES, HELD_OUT) is None
    assert len(remembered(messages([one, near], [True, True], **picks), CLASSES, HELD_OUT).opened) == 2
    drawn = messages([far, one, near], [True, True, True], np.array([np.nan, np.nan, 0.5]))
    assert len(remembered(drawn, CLASSES, HELD_OUT).opened) == 3


def test_places_are_bounded_and_the_oldest_go_first():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(500, 40))
    memory = remembered(messages(features, np.arange(500) % 2 == 0), CLASSES, HELD_OUT)
    assert len(memory.opened) == FEWEST_PLACES
    newest = features[::2][-FEWEST_PLACES:]
    np.testing.assert_allclose(memory.opened, newest / np.linalg.norm(newest, axis=1, keepdims=True), atol=1e-6)
    assert len(memory.known) == FEWEST_PLACES
    assert remembered(messages(features, np.zeros(500, dtype=bool)), CLASSES, HELD_OUT) is None
