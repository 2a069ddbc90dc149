"""The picture of all methods on the page *Benchmarks*, from the committed results.

Run it with ``python benchmarks/charts.py``. It is narrow and has large letters, so that it can be read on a phone.
"""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

HERE = Path(__file__).parent
PICTURE = HERE.parent / "docs" / "images" / "methods.png"
DEFAULT = "ellipsoid"


def main() -> None:
    lines = (HERE / "results" / "methods.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    frozen, head = (mean_f1(records, encoder) for encoder in ("none", "head"))
    names = sorted(frozen, key=frozen.get)
    places = np.arange(len(names))
    colours = ["#D55E00" if name == DEFAULT else "#8DB9D9" for name in names]

    plt.rcParams.update({"font.size": 13, "axes.spines.top": False, "axes.spines.right": False})
    fig, ax = plt.subplots(figsize=(6, 9), layout="constrained")
    ax.barh(places, [frozen[name] for name in names], height=0.72, color=colours, label="frozen text model")
    for place, name in zip(places, names, strict=True):
        ax.text(2, place, f"{frozen[name]:.1f}", va="center", color="white" if name == DEFAULT else "black")
    ax.plot([head[name] for name in names], places, "o", markersize=8, color="black", label="with the linear head")
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
