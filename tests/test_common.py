"""Promise: every classifier of the package passes scikit-learn's checks and this package's own.

The classifiers of ``skellipsoid.baselines`` come from its index; those of the literature stand here. What a check of
scikit-learn wants otherwise is listed with its reason; a classifier that is not listed skips those of ``BOUNDARY``. Of
the default classifier and of what wraps one all checks are fast tests, of one classifier of each template slow ones
(of scikit-learn's, of one with a boundary and one without).
All other classifiers have the validation of one of these: of them only ``OF_THE_CLASS`` and ``OWN_OF_THE_CLASS`` run.
"""

import inspect
import pickle
import warnings
from functools import cache
from itertools import product

import checks_of_answers
import checks_of_input
import pytest
from open_set_data import blobs, far_rows, has_boundary, scattered
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import estimator_checks_generator

import skellipsoid
from skellipsoid import EllipsoidOpenSetClassifier, TunedOperatingPointCV, baselines
from skellipsoid.baselines import BallClassifier, KNNOpenSetClassifier, MahalanobisClassifier, MaxLogitClassifier
from skellipsoid.utils import expected_failed_checks
from skellipsoid_bench.language_models import PromptOpenSetClassifier
from skellipsoid_bench.literature import ADBClassifier, CLABClassifier, DOCClassifier, MOGBClassifier, OpenMaxClassifier

#: Parameters for this package's own checks, where the defaults do not suit their few rows.
PARAMETERS = {
    BallClassifier: {"coverage": 1.0},
    # The median distance, where half of the rows are outside, made larger by negatives far away.
    CLABClassifier: {"normalize": False, "eta": 0.8},
    MOGBClassifier: {"min_size": 1, "split_size": 1},
    KNNOpenSetClassifier: {"normalize": False},
    OpenMaxClassifier: {"tail_size": 3},
}
#: Classifiers of the other distribution, and scikit-learn's checks that they rightly fail. ``xfail_strict`` makes a
#: needless one an error.
OF_LITERATURE = {
    **dict.fromkeys([ADBClassifier, CLABClassifier], expected_failed_checks(BallClassifier())),
    **dict.fromkeys([DOCClassifier, MOGBClassifier], expected_failed_checks(baselines.EnergyClassifier())),
    OpenMaxClassifier: expected_failed_checks(MahalanobisClassifier()),
}
OTHERS = [*(getattr(baselines, name) for name in baselines.__all__), *OF_LITERATURE]
CLASSIFIERS = {classifier: PARAMETERS.get(classifier, {}) for classifier in (EllipsoidOpenSetClassifier, *OTHERS)}


def expected_failures(estimator):
    return OF_LITERATURE.get(type(estimator)) or expected_failed_checks(estimator)


#: The default, and what wraps a classifier.
FAST = {EllipsoidOpenSetClassifier, TunedOperatingPointCV}
#: One of each template.
TEMPLATES = {
    BallClassifier,  # CentroidBallClassifier
    MaxLogitClassifier,  # LogitClassifier
    KNNOpenSetClassifier,  # ThresholdedClassifier
    baselines.LOFOpenSetClassifier,  # BaseOpenSetClassifier
}
#: Checks of what no template has: the parameters and the state.
OF_THE_CLASS = {
    *("check_do_not_raise_errors_in_init_or_set_param", "check_no_attributes_set_in_init"),
    *("check_parameters_default_constructible", "check_estimators_pickle", "check_dict_unchanged"),
}

#: Those of this package's own checks whose outcome a class's mathematics decides. The others hold for its template.
OWN_OF_THE_CLASS = {
    *("check_open_set_predict_is_open_exactly_below_offset", "check_open_set_same_seed_same_result"),
    *("check_open_set_learns", "check_open_set_pickle_joblib_clone", "check_open_set_input_unchanged"),
    "check_open_set_integer_weights_are_repetitions",
}
#: Those of literature train for long, and have tests of their own: these run beside them.
OWN_OF_LITERATURE = OWN_OF_THE_CLASS - {
    *("check_open_set_predict_is_open_exactly_below_offset", "check_open_set_same_seed_same_result"),
    "check_open_set_input_unchanged",
}


def sklearn_instance(classifier):
    """The default instance, with an open label that the data of scikit-learn's checks do not use.

    With a seed where there is one: ``check_classifiers_one_label`` sets none.
    """
    seed = {"random_state": 0} if "random_state" in classifier().get_params() else {}
    # The checks' classes have less than the five rows of a ball.
    more = CLASSIFIERS[classifier] if classifier is MOGBClassifier else {}
    return classifier(open_label=-999, **seed, **more)


def tuned_instance():
    """The tuned operating point of a quick classifier.

    Folds with open rows need more classes than the data of scikit-learn's checks have.
    """
    classifier = sklearn_instance(MahalanobisClassifier)
    return TunedOperatingPointCV(classifier, rejection_rate=0.4, cv=StratifiedKFold(2))


def sklearn_checks():
    """Estimators and scikit-learn's checks, the expected failures marked.

    What ``parametrize_with_checks`` does, as a list: scikit-learn 1.6 passes a generator, of which pytest warns.
    """
    for estimator in [*map(sklearn_instance, CLASSIFIERS), tuned_instance()]:
        failing = expected_failures(estimator)
        for case in estimator_checks_generator(estimator, expected_failed_checks=failing, mark="xfail"):
            values, marks = getattr(case, "values", case), [*getattr(case, "marks", ())]
            # scikit-learn 1.6 wants a TypeError of what takes no sparse rows; later ones do not ask it.
            if values[1].func.__name__.endswith("on_sparse_data") and not get_tags(estimator).input_tags.sparse:
                continue
            if values[1].func.__name__ not in OF_THE_CLASS and type(estimator) not in FAST:
                if type(estimator) not in {BallClassifier, KNNOpenSetClassifier}:  # with a boundary, and without
                    continue
                marks.append(pytest.mark.slow)
            yield pytest.param(*values, marks=marks)


def check_id(value):
    if not hasattr(value, "func"):
        return type(value).__name__
    options = ",".join(f"{name}={option}" for name, option in value.keywords.items())
    return f"{value.func.__name__}({options})"


@pytest.mark.parametrize(("estimator", "check"), list(sklearn_checks()), ids=check_id)
def test_sklearn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "estimator", [*map(sklearn_instance, CLASSIFIERS), tuned_instance()], ids=lambda each: type(each).__name__
)
def test_expected_failures_name_checks_that_run(estimator):
    names = {check.func.__name__ for _, check in estimator_checks_generator(estimator)}
    assert set(expected_failures(estimator)) <= names
    assert expected_failures(estimator)


# This package's own checks. Each takes an unfitted classifier whose open label is -1.


OPEN_SET_CHECKS = [
    function
    for module in (checks_of_answers, checks_of_input)
    for name, function in inspect.getmembers(module, inspect.isfunction)
    if name.startswith("check_open_set_")
]


#: What only a classifier with a boundary passes: it has margins.
BOUNDARY_CHECKS = {
    checks_of_answers.check_open_set_score_is_the_assigned_margin,
    checks_of_answers.check_open_set_decision_keeps_the_other_margins,
}


def own_checks():
    """Give pairs of a classifier and a check."""
    for classifier, check in product(CLASSIFIERS, OPEN_SET_CHECKS):
        of_class = OWN_OF_LITERATURE if classifier in OF_LITERATURE else OWN_OF_THE_CLASS
        is_fast = classifier in FAST or check.__name__ in of_class
        if is_fast or classifier in TEMPLATES:
            name = f"{classifier.__name__}-{check.__name__}"
            yield pytest.param(classifier, check, id=name, marks=[] if is_fast else [pytest.mark.slow])


@pytest.mark.parametrize(("classifier", "check"), list(own_checks()))
def test_open_set_checks(classifier, check, tmp_path):
    estimator = classifier(**CLASSIFIERS[classifier])
    if check in BOUNDARY_CHECKS and not has_boundary(estimator):
        pytest.skip("has no margins")
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", ".* have fewer than 10 different samples", UserWarning)  # the data are small
        check(estimator, *([tmp_path] if "folder" in inspect.signature(check).parameters else []))


# The rules of docs/api.rst.

#: What each public function of a fitted model is given beside it.
GIVEN = {
    "add_classes": lambda model, X, folder: {"X": far_rows(), "y": [9] * 5},
    "choose_to_label": lambda model, X, folder: {"X": scattered(), "n": 5},
    "compare": lambda model, X, folder: {"after": model, "X": X},
    "discover_classes": lambda model, X, folder: {"X": scattered()},
    "estimate_open_share": lambda model, X, folder: {"X": scattered()},
    "explain": lambda model, X, folder: {"X": X},
    "export_onnx": lambda model, X, folder: {"folder": folder / "graph"},
    "forecast_answers": lambda model, X, folder: {"open_share": 0.3},
    "learn_from_traffic": lambda model, X, folder: {"X": X, "y": [0, *[None] * (len(X) - 1)]},
    "merge_classes": lambda model, X, folder: {"merged": {9: [0, 1]}},
    "predict_open_proba": lambda model, X, folder: {"X": X, "open_share": 0.3},
    "predict_set": lambda model, X, folder: {"X": X, "max_classes": 2},
    "refresh": lambda model, X, folder: {},
    "remove_classes": lambda model, X, folder: {"labels": [0]},
    "save": lambda model, X, folder: {"folder": folder / "model"},
    "set_operating_point": lambda model, X, folder: {"X": X, "rejection_rate": 0.1},
}
FUNCTIONS = {name: getattr(skellipsoid, name) for name in skellipsoid.__all__}
FUNCTIONS = {name: function for name, function in FUNCTIONS.items() if inspect.isfunction(function)}
OF_MODELS = {
    name: function
    for name, function in FUNCTIONS.items()
    if {"estimator", "before"} & inspect.signature(function).parameters.keys()
}


def test_every_function_of_a_model_is_listed():
    assert OF_MODELS.keys() == GIVEN.keys()


@cache
def of_four_classes(steps):
    """A fitted model, as a pickle."""
    model = EllipsoidOpenSetClassifier(random_state=0)
    return pickle.dumps((make_pipeline(*steps, model) if steps else model).fit(*blobs(4)))


@pytest.mark.parametrize("name", GIVEN)
@pytest.mark.parametrize("steps", [(), (StandardScaler(),)], ids=["classifier", "Pipeline"])
def test_only_names_that_begin_with_set_change_the_model_and_return_it(name, steps, tmp_path, one_registry):
    X = blobs(4)[0]
    model = pickle.loads(of_four_classes(steps))
    before = pickle.dumps(model)
    result = OF_MODELS[name](model, **GIVEN[name](model, X, tmp_path))
    assert (pickle.dumps(model) != before) == (result is model) == name.startswith("set_")


def test_no_method_has_the_name_of_a_function():
    for kind in (*CLASSIFIERS, skellipsoid.ScoreOpenSetClassifier, PromptOpenSetClassifier, TunedOperatingPointCV):
        assert not FUNCTIONS.keys() & {*dir(kind)}
