"""Pictures of results: what they show, and what cannot be shown."""

import numpy as np
import pytest
from matplotlib import pyplot as plt

from skellipsoid_bench import plot_confusion, plot_ranks, plot_stability


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


def lines_of(ax):
    """Points of each line by its name."""
    handles, names = ax.get_legend_handles_labels()
    return {name: np.column_stack(handle[0].get_data()).tolist() for handle, name in zip(handles, names, strict=True)}


def test_stability_of_what_was_searched_is_that_of_the_folds(make_record):
    def searched(seed, f1, chosen=0.5, **more):
        scores = [
            {"params": {"beta": beta, "alpha": alpha}, "f1": f1 + beta + 100 * (alpha != 0.6)}
            for beta in (0.1, 0.5, 5.0)
            for alpha in (0.6, 1.0)
        ]
        return make_record(seed=seed, search={"chosen": {"beta": chosen, "alpha": 0.6}, "scores": scores}, **more)

    ax = plot_stability([searched(0, 70.0), searched(1, 72.0), searched(0, 60.0, data="oos")], "beta")
    assert lines_of(ax) == {
        "banking 25%": [[0.1, pytest.approx(71.1)], [0.5, pytest.approx(71.5)], [5.0, pytest.approx(76.0)]],
        "oos 25%": [[0.1, pytest.approx(60.1)], [0.5, pytest.approx(60.5)], [5.0, pytest.approx(65.0)]],
    }
    assert ax.get_xscale() == "log"
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0.1", "0.5", "5"]
    assert not len(ax.get_xticks(minor=True))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("beta", "F1 of held-out folds, in percent")


def test_confusion_is_summed_over_the_cases(make_record):
    records = [make_record(seed=seed, method=method) for seed in (0, 1) for method in ("a", "b", "c", "d", "e")]
    figure = plot_confusion(records)
    drawn = [ax for ax in figure.axes if ax.axison]
    assert [ax.get_title() for ax in drawn] == [f"{method}, head" for method in "abcde"]
    texts = [text.get_text().partition("\n")[0] for text in drawn[0].texts]
    assert texts == ["12", "2", "6", "–", "4", "16"]


def test_what_cannot_be_drawn_is_refused(make_record):
    records = [make_record(method=name) for name in "abc"]
    with pytest.raises(ValueError, match=r"^No result has two values of 'beta'; search it, or run methods that differ"):
        plot_stability(records, "beta")
    with pytest.raises(ValueError, match=r"^metric='F1' is not a figure of a result; use f1, accuracy, "):
        plot_ranks(records, metric="F1")
    with pytest.raises(ValueError, match=r"^There is no result to draw; run the benchmark first, or choose others\.$"):
        plot_confusion([])
    with pytest.raises(ValueError, match=r"^scores has the shape \(1, 3\), but must be"):
        plot_ranks(records)
    with pytest.raises(ValueError, match=r"^scores has the shape \(0, 0\), but must be"):
        plot_ranks(records, metric="auroc")


def test_stability_of_methods_or_encoders_that_differ_in_it_alone_is_that_of_the_test_rows(make_record):
    records = [
        make_record(method=f"beta {beta}", seed=seed, f1=70.0 + beta + seed, params={"beta": beta, "alpha": 0.6})
        for beta in (0.2, 0.4)
        for seed in (0, 2)
    ]
    records.append(make_record(method="other", f1=1.0, params={"beta": 9.0, "alpha": 5.0}))
    ax = plot_stability(records, "beta")
    assert lines_of(ax) == {"banking 25%": [[0.2, pytest.approx(71.2)], [0.4, pytest.approx(71.4)]]}
    assert ax.get_xscale() == "linear"
    assert ax.get_ylabel() == "F1 of test samples, in percent"
    accuracy = plot_stability(records, "beta", metric="accuracy")
    assert lines_of(accuracy)["banking 25%"][0] == [0.2, pytest.approx(81.2)]
    records = [
        make_record(encoder=f"{loss} {seed}", f1=f1, encoder_params={"finetune": "head", "loss": loss}, seed=seed)
        for loss, f1 in (("supcon", 80.0), ("softmax", 70.0))
        for seed in (0, 1)
    ]
    of_encoder = plot_stability(records, "loss")
    assert [*lines_of(of_encoder).values()] == [[[0, 70.0], [1, 80.0]]]
    assert [text.get_text() for text in of_encoder.get_xticklabels()] == ["softmax", "supcon"]
