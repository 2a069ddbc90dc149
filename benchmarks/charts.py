"""The picture of all methods on the page *Benchmarks*, and the README's table by texts per class.

Both are made from the committed results by ``python benchmarks/charts.py``. The picture is narrow, with large letters,
so that it can be read on a phone. The table is printed.
"""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

HERE = Path(__file__).parent
PICTURE = HERE.parent / "docs" / "images" / "methods.png"
DEFAULT = "ellipsoid"
#: From this number of texts per class on, the table has the linear head in place of the frozen text model.
HEAD_FROM = 25


def main() -> None:
    draw_methods(read("methods"))
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


def draw_methods(records: list[dict]) -> None:
    frozen, head = (mean_f1(records, encoder) for encoder in ("none", "head"))
    names = sorted(frozen, key=frozen.get)
    places = np.arange(len(names))
    colours = ["#D55E00" if name == DEFAULT else "#8DB9D9" for name in names]

    plt.rcParams.update({"font.size": 13, "axes.spines.top": False, "axes.spines.right": False})
    fig, ax = plt.subplots(figsize=(6, 9), layout="constrained")
    ax.barh(places, [frozen[name] for name in names], height=0.72, color=colours, label="frozen text model")
    for place, name in zip(places, names, strict=True):
        ax.text(2, place, f"{frozen[name]:.1f}", va="center", color="white" if name == DEFAULT else "black")
    with_head = [head.get(name, np.nan) for name in names]
    ax.plot(with_head, places, "o", markersize=8, color="black", label="with the linear head")
    ax.set(yticks=places, xlim=(0, 100), ylim=(-0.7, len(names) - 0.3), xlabel="F1, percent")
    ax.set_yticklabels([f"{name}\n(the default)" if name == DEFAULT else name for name in names])
    ax.tick_params(axis="y", length=0)
    fig.legend(loc="outside upper center", ncols=2, frameon=False)
    fig.savefig(PICTURE, dpi=110)


def mean_f1(records: list[dict], encoder: str) -> dict[str, float]:
    """Mean F1 over all settings and draws, of every method."""
    found: dict[str, list[float]] = {}
    for record in records:
        if record["encoder"] == encoder:
            found.setdefault(record["method"], []).append(record["f1"])
    return {name: float(np.mean(values)) for name, values in found.items()}


if __name__ == "__main__":
    main()
