"""The results of ``cases.py`` as tables for the guide, and the paired tests.

python benchmarks/report.py                                    # prints
python benchmarks/report.py > benchmarks/results/tables.rst    # what the guide includes
"""

import baselines
import numpy as np
from cases import read_results
from features import RATIOS, SEEDS

from skellipsoid.metrics import holm, paired_test

#: What the paper says of BERT-base, fully fine-tuned: F1 and accuracy at 25, 50 and 75 %.
PAPER = {
    "banking": [(77.75, 85.81), (83.74, 82.90), (86.80, 81.97)],
    "oos": [(84.48, 92.57), (88.57, 90.56), (90.21, 88.98)],
    "stackoverflow": [(84.35, 90.74), (87.06, 87.86), (88.00, 84.93)],
}
#: The highest of any published method: the paper's Table 1, and the result tables of the TEXTOIR platform (KNNCL on
#: BERT, DA-ADB on an 8-billion-parameter Llama).
PUBLISHED = {
    "banking": [(77.75, 86.14), (83.74, 82.90), (86.80, 82.19)],
    "oos": [(84.54, 93.07), (88.86, 90.56), (90.48, 89.23)],
    "stackoverflow": PAPER["stackoverflow"],
}
NAMES = {"banking": "Banking77", "oos": "CLINC150", "stackoverflow": "StackOverflow"}
CELLS = [(name, ratio) for name in NAMES for ratio in RATIOS]
METRICS = {"f1": "F1", "accuracy": "accuracy"}
HEADINGS = {
    "paper": "Paper's setting",
    "size": "Size alone",
    "before": "Version before",
    "default": "Default",
    "oracle": "Oracle",
}
MODES = {"frozen": "frozen", "head": "linear head", "head-plain": "linear head, not cross-fitted", "full": "fine-tuned"}


def main():
    """Print everything that is there."""
    results = read_results()
    for model, mode in sorted({(row["model"], row["mode"]) for row in results}):
        mine = {
            (row["setting"], row["data"], row["ratio"], row["seed"]): row
            for row in results
            if (row["model"], row["mode"]) == (model, mode)
        }
        print(f"**{model}, {MODES[mode]}**\n")
        for i, (metric, name) in enumerate(METRICS.items()):
            table(mine, metric, name, [PAPER[data][RATIOS.index(ratio)][i] for data, ratio in CELLS])
        if any(key[0] == "default" for key in mine):
            summary(mine)
            compare(mine, model, mode)


def compare(results, model, mode):
    """Print other scores on the same features, at their best thresholds, beside the default as it was fitted."""
    others = [row for row in baselines.read_results() if (row["model"], row["mode"]) == (model, mode)]
    if not others:
        return
    lines = [["same features", "F1", "accuracy", "AUROC", "default is better by"]]
    default = {key[1:]: row for key, row in results.items() if key[0] == "default"}
    for method in sorted({row["method"] for row in others}):
        rows = {(row["data"], row["ratio"], row["seed"]): row for row in others if row["method"] == method}
        cases = sorted(rows.keys() & default.keys())
        f1, accuracy, auroc = (
            np.array([rows[case][name] for case in cases]) for name in ("oracle_f1", "oracle_accuracy", "auroc")
        )
        ours = np.array([default[case]["f1"] for case in cases])
        p_value = paired_test(ours, f1).t_pvalue
        texts = [f"{np.mean(column):.2f}" for column in (f1, accuracy, auroc)]
        lines.append([method, *texts, f"{np.mean(ours - f1):+.2f} F1 (p = {p_value:.1g})"])
    means = [f"{np.mean([row[name] for row in default.values()]):.2f}" for name in ("f1", "accuracy", "auroc")]
    lines.append(["*default, as fitted*", *means, ""])
    means = [
        f"{np.mean([row[name] for row in default.values()]):.2f}" for name in ("oracle_f1", "oracle_accuracy", "auroc")
    ]
    lines.append(["*default, oracle*", *means, ""])
    print("Other scores on the same features, at the threshold that is best on the test rows:\n")
    print_table(lines)


def table(results, metric, name, paper):
    """Print one metric of one text model; in bold what reaches the paper's figure in the mean of all seeds."""
    settings = [setting for setting in HEADINGS if any(values(results, setting, metric, *cell) for cell in CELLS)]
    is_complete = all(len(values(results, "default", metric, *cell)) == len(SEEDS) for cell in CELLS)
    lines = [[f"{name}, known", "BERT, paper", *(HEADINGS[setting] for setting in settings)]]
    for (data, ratio), wanted in zip(CELLS, paper, strict=True):
        if not any(values(results, setting, metric, data, ratio) for setting in settings):
            continue
        line = [f"{NAMES[data]} {ratio:.0%}", f"{wanted:.2f}"]
        for setting in settings:
            found = values(results, setting, metric, data, ratio)
            text = f"{np.mean(found):.2f}" if found else ""
            text += f" ± {np.std(found):.1f}" if len(found) > 1 else ""
            text += f" ({len(found)})" if 0 < len(found) < len(SEEDS) else ""
            # One lucky draw beside a mean of five says little.
            is_bold = len(found) == len(SEEDS) and np.mean(found) >= wanted and setting != "oracle"
            line.append(f"**{text}**" if is_bold else text)
        lines.append(line)
    columns = [[values(results, setting, metric, *cell) for cell in CELLS] for setting in settings]
    means = [
        f"{np.mean(column):.2f}" if all(len(found) == len(SEEDS) for found in column) else "" for column in columns
    ]
    if is_complete:
        lines.append(["mean", f"{np.mean(paper):.2f}", *means])
    print_table(lines)


def print_table(lines):
    """Print lines of texts as a table of reStructuredText; the first one holds the headings."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rule = "  ".join("=" * width for width in widths)
    rows = ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    print("\n".join([rule, rows[0], rule, *rows[1:], rule]) + "\n")


def values(results, setting, metric, data, ratio):
    """Figures of all seeds of one cell."""
    prefix, wanted = ("oracle_", "default") if setting == "oracle" else ("", setting)
    return [row[prefix + metric] for key, row in sorted(results.items()) if key[:3] == (wanted, data, ratio)]


def summary(results):
    """Print the distance to the oracle, and paired tests of the default against every other setting."""
    default = [row for key, row in results.items() if key[0] == "default"]
    f1, accuracy = (np.mean([row[f"oracle_{metric}"] - row[metric] for row in default]) for metric in METRICS)
    print(f"The default is {f1:.2f} points of F1 and {accuracy:.2f} of accuracy below its oracle, ", end="")
    print(f"in the mean of {len(default)} cases.", end="")
    if len(default) == len(CELLS) * len(SEEDS):
        print(f" It reaches the paper's figure in {reached(results, PAPER)} cells, the ", end="")
        print(f"highest published one in {reached(results, PUBLISHED)}.", end="")
    print("\n")
    for other in HEADINGS:
        cases = sorted(key[1:] for key in results if key[0] == other and ("default", *key[1:]) in results)
        if other != "default" and len(cases) > 1:
            print(f"- {against(results, other, cases)}")
    print()


def reached(results, figures):
    """Count the cells, twice for both metrics, in which the default's mean is at least a figure."""
    found = [
        np.mean(cell) >= figures[data][RATIOS.index(ratio)][i]
        for i, metric in enumerate(METRICS)
        for data, ratio in CELLS
        if (cell := values(results, "default", metric, data, ratio))
    ]
    return f"{sum(found)} of {len(found)}"


def against(results, other, cases):
    """Compare the default with another setting over all cases, and by cell (Holm)."""
    ours, theirs = (np.array([results[setting, *case]["f1"] for case in cases]) for setting in ("default", other))
    start = f"Default against {HEADINGS[other].lower()}, {len(cases)} cases:"
    if (ours == theirs).all():
        return f"{start} equal in all."
    p_values = []
    for cell in CELLS:
        rows = [i for i, case in enumerate(cases) if case[:2] == cell]
        differs = len(rows) > 1 and (ours[rows] != theirs[rows]).any()
        p_values.append(paired_test(ours[rows], theirs[rows]).t_pvalue if differs else 1.0)
    better = sum(p < 0.05 for p in holm(p_values))
    return (
        f"{start} {np.mean(ours - theirs):+.2f} F1, different in {np.sum(ours != theirs)} "
        f"(paired t-test: p = {paired_test(ours, theirs).t_pvalue:.1g}; Holm-corrected, {better} of {len(CELLS)} cells "
        "below 0.05)."
    )


if __name__ == "__main__":
    main()
