"""Join what a month brought to the export: all labelled texts in ``all.csv``, for another ``skellipsoid train``."""

import pandas as pd


def read(name, sep="\t"):
    """Read a table as text: a message such as NA is no missing value."""
    return pd.read_csv(name, sep=sep, dtype=str, keep_default_na=False)


# Each group has a label, and each of its texts stands in the file of members.
labels = read("labelled.tsv").set_index("group")["label"]
members = read("groups-members.tsv")
new = pd.DataFrame({"message": members["text"], "category": members["group"].map(labels)})
# Messages that were labelled one by one.
review = read("review.tsv").rename(columns={"label": "category"})
rows = pd.concat([read("export.csv", ","), new, review])[["message", "category"]]
rows.to_csv("all.csv", index=False)
