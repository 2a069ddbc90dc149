"""Rekey results that were written before methods were known by name, settings and ``answers_version``.

Rows whose limit was placed before ``open_share`` and ``known_shift`` were parameters get these: a quarter to three
quarters of open samples, and known ones that come as the training samples do.

Classes are named without their modules. Hashes of parameters and of sources go. Rows of ``ablations.jsonl`` that a
trainer without weight decay gave, and that had the names of today's methods, are named for what they are. Lines of
other kinds stay, and a second run changes nothing.
"""

import json
import re
import sys
from pathlib import Path

#: Names of rows that are of the first trainer of the package, in ``ablations.jsonl``.
OF_THE_FIRST_TRAINER = {
    "shape: diagonal": "paper's boundary, diagonal",
    "shape: ball": "paper's boundary, ball",
    "loss: ADB": "paper's boundary, loss of ADB",
    "loss: CLAB": "paper's boundary, loss of CLAB",
    "loss: ADB-Gen": "paper's boundary, loss of ADB-Gen",
}


def named(value):
    """Name a class without its module, if it is of these packages."""
    return re.sub(r"^skellipsoid[\w.]*:", "", value)


def rekeyed(record):
    """Give a result as it is written today."""
    record = {name: value for name, value in record.items() if name != "spec"}
    record["estimator"] = named(record["estimator"])
    for params in (record["params"], record["encoder_params"] or {}):
        if isinstance(params.get("estimator"), str):
            params["estimator"] = named(params["estimator"])
        if isinstance(params.get("trainer"), dict):
            params["trainer"]["class"] = named(params["trainer"]["class"])
    if "code" in record:
        record["code"] = {name: value for name, value in record["code"].items() if name not in ("sha256", "encoder")}
    if _has_limit(record):
        record["params"] = {**record["params"], "open_share": [0.25, 0.75], "known_shift": 0}
    if "shape" in record["params"]:  # the first trainer was the classifier itself
        record["method"] = OF_THE_FIRST_TRAINER.get(record["method"], record["method"])
    return record


def _has_limit(record):
    """Whether held-out samples placed the limit, for the traffic that the plans now name."""
    params, is_of_paper = record["params"], record["method"].startswith("paper")
    is_ours = record["estimator"] == "EllipsoidOpenSetClassifier" and not (is_of_paper or params.get("trainer"))
    is_auto = record["estimator"] == "MahalanobisClassifier" and params.get("threshold") == "auto"
    return (is_ours or is_auto) and "open_share" not in params


def main(paths):
    """Rewrite files."""
    for path in map(Path, paths):
        lines = path.read_text(encoding="utf-8").splitlines()
        records = [json.loads(line) for line in lines]
        if all("estimator" in record for record in records):
            text = "".join(json.dumps(rekeyed(record), ensure_ascii=False) + "\n" for record in records)
            print(path, len(records), "rows", "as before" if text.splitlines() == lines else "rekeyed")
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
