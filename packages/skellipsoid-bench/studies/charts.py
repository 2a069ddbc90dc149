"""The pictures of methods that people use today and of growth, and the README's table by texts per class.

They are made from the committed results by ``python studies/charts.py``. The pictures are narrow, with large letters,
so that they can be read on a phone. The table is printed.
"""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image
from today import AUTO, case_of, cases_of, with_auto

HERE = Path(__file__).parents[1]
PICTURES = HERE.parents[1] / "docs" / "images"
#: From this number of texts per class on, the table has the linear head in place of the frozen text model.
HEAD_FROM = 25
#: Pixels an inch: twice as many as a page shows them with; few colours keep the files small.
DENSITY, COLOURS = 200, 64


def main() -> None:
    draw_today(with_auto(read("today")))
    draw_growth(read("growth"))
    print_texts_per_class(read("texts_per_class"))


def read(name: str) -> list[dict]:
    lines = (HERE / "results" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def print_texts_per_class(records: list[dict]) -> None:
    """Print means over the data sets, each of which has one vote, and in it over known-class ratios and draws."""
    print("| texts per class | data sets | right | wrong class | known rejected | open noticed | F1 |")
    print("|---|---|---|---|---|---|---|")
    for size in sorted({record["size"] for record in records}):
        mode = "head" if size >= HEAD_FROM else "none"
        votes: dict[str, list[list[float]]] = {}
        for record in records:
            if record["size"] == size:
                row = [record[mode][figure] for figure in ("wrong", "rejected", "noticed", "f1")]
                votes.setdefault(record["data"], []).append(row)
        wrong, rejected, noticed, f1 = np.mean([np.mean(rows, axis=0) for rows in votes.values()], axis=0)
        figures = (100 - wrong - rejected, wrong, rejected, noticed, f1)
        print(f"| {size} | {len(votes)} |", *(f"{figure:.0f} % |" for figure in figures))


def draw_today(records: list[dict]) -> None:
    """Draw what each method does with known and with open texts, the best F1 on top."""
    every = cases_of(records, AUTO)
    kept = [record for record in records if case_of(record) in every]
    of_method: dict[str, list[dict]] = {}
    for record in kept:
        of_method.setdefault(record["method"], []).append(record)
    of_method = {name: rows for name, rows in of_method.items() if len(rows) == len(every)}

    def mean(name: str, figure: str) -> float:
        return float(np.mean([row[figure] for row in of_method[name]]))

    names = sorted(of_method, key=lambda name: mean(name, "f1"))
    places = np.arange(len(names))
    right = [100 - mean(name, "rejected") - mean(name, "wrong") for name in names]
    noticed = [mean(name, "noticed") for name in names]
    plt.rcParams.update({"font.size": 13, "axes.spines.top": False, "axes.spines.right": False})
    fig, ax = plt.subplots(figsize=(6, 8), layout="constrained")
    ax.hlines(places, right, noticed, color="#CCCCCC", linewidth=3, zorder=0)
    ax.plot(right, places, "o", markersize=9, color="#0072B2", label="known texts predicted right")
    ax.plot(noticed, places, "D", markersize=8, color="#D55E00", label="open texts detected")
    for place, name in zip(places, names, strict=True):
        ax.text(103, place, f"{mean(name, 'f1'):.1f}", va="center")
    ax.text(103, len(names) - 0.35, "F1", va="center")
    ax.set(yticks=places, xlim=(0, 101), ylim=(-0.7, len(names) - 0.1), xlabel="of 100")
    ax.set_yticklabels(names)
    for label, name in zip(ax.get_yticklabels(), names, strict=True):
        label.set_fontweight("bold" if name.startswith("skellipsoid") else "normal")
    ax.tick_params(axis="y", length=0)
    fig.legend(loc="outside upper center", frameon=False)
    save(fig, "today.png")


def draw_growth(records: list[dict]) -> None:
    """Draw time and memory of a fit against what grows, on logarithmic axes, with the exponent of the last step."""
    plt.rcParams.update({"font.size": 13, "axes.spines.top": False, "axes.spines.right": False})
    fig, axes = plt.subplots(2, 3, figsize=(10, 6.4), layout="constrained", sharey="row")
    rest = {
        "samples": "100 classes, 384 features",
        "classes": "5 samples each, 384 features",
        "features": "4,000 samples, 40 classes",
    }
    for column, (what, others) in enumerate(rest.items()):
        rows = [record for record in records if record["grows"] == what]
        same = [record for record in rows if what != "samples" or record["classes"] == rows[0]["classes"]]
        for ax, figure, unit in zip(axes[:, column], ("seconds", "gib"), ("seconds", "GiB"), strict=True):
            sizes, values = [[record[name] for record in same] for name in (what, figure)]
            ax.loglog(sizes, values, "o-", color="#0072B2", markersize=8)
            (x_0, x_1), (y_0, y_1) = sizes[-2:], values[-2:]
            exponent = np.log(y_1 / y_0) / np.log(x_1 / x_0)
            ax.annotate(f"exponent {exponent:.1f}", (x_1, y_1), (-8, 8), textcoords="offset points", ha="right")
            for record in rows[len(same) :]:
                ax.loglog(record[what], record[figure], "D", color="#D55E00", markersize=8)
                ax.annotate(
                    f"{record['classes']:,} classes",
                    (record[what], record[figure]),
                    (-10, -4),
                    textcoords="offset points",
                    ha="right",
                )
            ax.grid(alpha=0.3)
            if not column:
                ax.set_ylabel(unit)
        axes[0, column].set_title(others, fontsize=12)
        axes[1, column].set_xlabel(what)
    save(fig, "growth.png")


def save(fig: plt.Figure, name: str) -> None:
    fig.savefig(PICTURES / name, dpi=DENSITY)
    Image.open(PICTURES / name).convert("RGB").quantize(COLOURS).save(PICTURES / name, optimize=True)


if __name__ == "__main__":
    main()
