"""Tables: means, spreads, ranks, the paper's numbers, paired tests, three formats."""

import numpy as np
import pytest
from scipy.stats import ttest_rel

from skellipsoid import EllipsoidOpenSetClassifier
from skellipsoid_bench import make_table
from skellipsoid_bench._identity import answers_of

OTHER = {"method": "mine", "estimator": "mine:Classifier"}


@pytest.fixture
def records(make_record):
    """Two methods, two ratios, three seeds of Banking; the other method lacks a seed at 50 %."""
    ours = {0.25: (70.0, 72.0, 74.0), 0.5: (80.0, 81.0, 82.0)}
    theirs = {0.25: (71.0, 72.0, 70.0), 0.5: (80.0, 79.0)}
    return [
        make_record(ratio=ratio, seed=i, f1=f1, **more)
        for scores, more in ((ours, {}), (theirs, OTHER))
        for ratio, each in scores.items()
        for i, f1 in enumerate(each)
    ]


def test_markdown(records):
    lines = make_table(records).to_markdown().splitlines()
    assert lines[2:8] == [
        "### Encoder: head",
        "",
        "| Method | F1 | ACC | AUROC | Best threshold F1 | Rejected, known / open | Reached | Fit, s | Predict, ms | "
        "Memory, MiB | Cases |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        "| ellipsoid | 76.50 ± 1.50 | 86.50 ± 1.50 |  | 76.50 | 30.0 / 80.0 | 1 of 4 | 1.5 | 4 | 50 | 6 |",
        "| mine | 74.40 | 84.40 |  | 74.40 | 30.0 / 80.0 | 1 of 4 | 1.5 | 4 | 50 | 5 |",
    ]
    start = lines.index("### Encoder: head", 3)
    assert lines[start - 2].startswith("ellipsoid minus each other method, in points")
    assert lines[start + 2] == "| Method | F1 | ACC | F1, other at best threshold |"
    assert lines[start + 4].startswith("| mine | +1.00 (p = 0.")
    start = lines.index("### Encoder: head", start + 1)
    assert lines[start - 2].startswith("The same tests as the paper reports them, and as they should be read.")
    # The means over the seeds differ by 1 at both ratios; the variances are 1 and 0.5.
    assert lines[start + 4] == "| mine | 1.12 | 0.3 | 0 | 0.75 | 1.12 | 0.3 | 0 | 0.75 |"
    assert lines[-4:] == [
        "| Data | Method | 25% F1 | 25% ACC | 50% F1 | 50% ACC | Average F1 | Average ACC |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        "| Banking | ellipsoid | **72.00 ± 2.00** (77.75) | **82.00 ± 2.00** (85.81) | **81.00 ± 1.00** (83.74) | "
        "**91.00 ± 1.00** (82.90) | **76.50** (80.75) | **86.50** (84.36) |",
        "| Banking | mine | <u>71.00 ± 1.00</u> | <u>81.00 ± 1.00</u> | <u>79.50 ± 0.71</u> [2 of 3 seeds] | "
        "<u>89.50 ± 0.71</u> [2 of 3 seeds] | <u>75.25</u> [2 of 3 seeds] | <u>85.25</u> [2 of 3 seeds] |",
    ]


def test_the_summary_is_over_all_cases(make_record):
    f1 = {0: (78.0, 80.0), 1: (80.0, 84.0), 2: (79.0, 88.0)}
    records = [
        make_record(ratio=ratio, seed=seed, f1=value, auroc=90.0 + seed, fit_seconds=seed, peak_memory_mb=100 * seed)
        for seed, each in f1.items()
        for ratio, value in zip((0.25, 0.5), each, strict=True)
    ]
    (found,) = make_table(records).summaries
    assert found[:3] == ("head", "ellipsoid", 6)
    assert found.f1_std == pytest.approx(np.std([79.0, 82.0, 83.5], ddof=1))
    assert (found.auroc, found.oracle_f1) == (91.0, pytest.approx(81.5))
    assert (found.false_rejection_rate, found.open_rejection_rate) == (30.0, 80.0)
    # The paper has 77.75 / 85.81 and 83.74 / 82.90; the means are 79 / 89 and 84 / 94.
    assert (found.n_reached, found.n_compared) == (4, 4)
    assert (found.fit_seconds, found.predict_seconds, found.memory_mb) == (1.0, 0.004, 200)
    uneven = [make_record(coarse=[[6, 1, 3], [0, 2, 8]]), make_record(seed=1, coarse=[[1, 0, 1], [0, 0, 0]])]
    (without_open,) = make_table(uneven).summaries
    assert (without_open.false_rejection_rate, without_open.open_rejection_rate) == (pytest.approx(40.0), None)
    assert "| 40.0 / – |" in make_table(uneven).to_markdown()
    (own,) = make_table([make_record(data="mine"), make_record(data="mine", seed=1, ratio=0.5)]).summaries
    assert (own.f1_std, own.n_reached, own.n_compared, own.auroc) == (None, 0, 0, None)


def test_comparisons_are_paired_by_case_and_corrected(make_record):
    rng = np.random.default_rng(0)
    scores = {name: 70 + shift + rng.normal(size=10) for name, shift in (("a", 0), ("b", -1.0), ("c", -0.5))}
    records = [
        make_record(method=name, seed=seed % 5, ratio=(0.25, 0.5)[seed // 5], f1=f1, oracle_f1=f1 + 2)
        for name, each in scores.items()
        for seed, f1 in enumerate(each)
    ]
    table = make_table(records[::-1], reference="a")
    found = {(test.method, test.metric): test for test in table.comparisons}
    assert {*found} == {(name, metric) for name in "bc" for metric in ("f1", "accuracy", "oracle_f1")}
    raw = {name: ttest_rel(scores["a"], scores[name]) for name in "bc"}
    for name in "bc":
        test = found[name, "f1"]
        assert test.n_cases == 10
        assert test.difference == pytest.approx(np.mean(scores["a"] - scores[name]))
        assert test.t_statistic == pytest.approx(raw[name].statistic)
        assert test.p_value == pytest.approx(raw[name].pvalue)
        assert found[name, "oracle_f1"].difference == pytest.approx(test.difference - 2)
    low, high = sorted("bc", key=lambda name: raw[name].pvalue)
    assert found[low, "f1"].holm == pytest.approx(min(1, 2 * raw[low].pvalue))
    assert found[high, "f1"].holm == pytest.approx(max(2 * raw[low].pvalue, raw[high].pvalue))


def test_figures_of_scores_have_a_table_where_all_cases_have_them(records):
    scores = {"auroc": 91.0, "aupr_known": 92.0, "aupr_open": 93.0, "fpr95": 30.0, "oscr": 85.0}
    assert "OSCR" not in make_table(records).to_markdown()
    some = [{**record, **scores} if record["method"] == "mine" else record for record in records]
    old = [{**record, "auroc": 90.0} for record in some if record["method"] == "ellipsoid"]
    assert "OSCR" not in make_table([*old, *some[6:]]).to_markdown()
    lines = make_table(some).to_markdown().splitlines()
    assert "| Method | AUROC | AUPR known | AUPR open | FPR at 95 % | OSCR | Cases |" in lines
    assert [line for line in lines if "93.00" in line] == ["| mine | 91.00 | 92.00 | 93.00 | 30.00 | 85.00 | 5 |"]


def test_tables_say_what_methods_were_told_and_which_cases_are_old_or_missing(records):
    settings = {"open_share": [0.25, 0.75], "known_shift": 0, "beta": 0.5}
    rows = [{**record, "params": settings} if record["method"] == "ellipsoid" else record for record in records]
    table = make_table(rows)
    told, older, incomplete = table.notes["head"]
    assert older.endswith("not anew: ellipsoid.")
    today = answers_of(EllipsoidOpenSetClassifier())
    for other in ({"answers_version": today}, {"params": {"trainer": {"class": "EliDecide"}}}, OTHER):
        assert not any("not anew" in note for note in make_table([row | other for row in rows]).notes["head"])
    assert told.endswith(
        "traffic: open_share 0.25 to 0.75, known_shift 0: ellipsoid. The others have no such parameters."
    )
    assert incomplete.startswith(
        "Incomplete: of 6 cases have mine 5, so that these means and ranks are not of the same"
    )
    assert table.to_markdown().count(incomplete) == 2
    assert "known\\_shift 0: ellipsoid" in table.to_latex()


def test_what_cannot_be_a_table_is_refused(records):
    with pytest.raises(ValueError, match=r"^There is no result to make a table of; run the benchmark first, or choose"):
        make_table([])
    with pytest.raises(ValueError, match=r"^reference='yours' has no result; the methods are ellipsoid, mine\.$"):
        make_table(records, reference="yours")
