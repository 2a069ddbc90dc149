"""What is wrong with the words and files of a command is said at once: before torch and scikit-learn are imported."""

import os

#: Runs the command in a process that can import neither.
WITHOUT = """
import sys
class Refused:
    def find_spec(self, name, *_):
        if name in ("torch", "sklearn", "scipy", "transformers"):
            raise AssertionError(f"{name} is imported")
sys.meta_path.insert(0, Refused())
from skellipsoid.cli import main
for words in open(sys.argv[1], encoding="utf-8").read().split("\\n"):
    print(main(words.split("\\t")), flush=True)
"""


def test_it_is_said_before_anything_slow_is_imported(saved, tmp_path, fresh_python):
    folder = tmp_path
    good, broken, pipe = folder / "good.csv", folder / "broken.csv", folder / "pipe"
    good.write_text("text,label\nwake me,alarm\nis it warm,weather\nis it cold,weather\n", encoding="utf-8")
    broken.write_text("text,label\nwake me,alarm\na,b,c,d\n", encoding="utf-8")
    (folder / "file").touch()
    os.mkfifo(pipe)
    use = ["--model", saved]
    # Words of commands that cannot be done, and what is said of each.
    cases = [
        (
            ["train", "--data", folder / "none.csv", "--save", folder / "m"],
            "be read (No such file or directory)",
        ),
        (["train", "--data", good, "--save", saved], "exists; pass --overwrite"),
        (["train", "--data", broken, "--save", folder / "m"], "Line 3 of"),
        (["train", "--data", good, "--encoding", "utf-99", "--save", folder / "m"], "--encoding 'utf-99' is not known"),
        (["evaluate", "--model", folder, "--data", good], "is not a saved model"),
        (["predict", "--model", folder / "none", "text"], "There is no folder"),
        (["predict", *use, "text", "--data", good], "leave one of them out"),
        (["predict", *use, "--data", good, "--out", folder / "file"], "is a file, where a folder is to be"),
        (["export", *use, "--out", folder / "file"], "is a file, where a folder is to be"),
        (["traffic", *use, "--data", good, "--save", pipe], "is a device or a pipe, where a file is to be written"),
        (["traffic", *use, "--data", good, "--save", folder / "a.xls"], "is a .xls file"),
        (["review", *use, "--data", good, "--save", folder / "none" / "a.tsv"], "There is no folder"),
        (["monitor", *use, "--data", good, "--state", pipe], "is a device or a pipe"),
        (["compare", "--before", saved, "--after", folder / "no", "--data", good], "There is no folder"),
        (["compare", "--before", saved, "--after", saved, "--data", good, "--save", folder / "a.json"], "a .json file"),
        (["set-threshold", *use], "set-threshold sets one threshold"),
        (["learn", *use, "--data", good, "--log", folder / "none.csv"], "cannot be read"),
        (["add", *use, "--data", broken], "Line 3 of"),
        (["remove", *use, "--labels", "a", "--save", saved], "exists"),
    ]
    (folder / "words").write_text("\n".join("\t".join(map(str, words)) for words, _ in cases), encoding="utf-8")
    answer = fresh_python(WITHOUT, folder / "words")
    errors = answer.stderr.splitlines()
    assert len(errors) == len(cases), answer.stderr
    for (words, sentence), error in zip(cases, errors, strict=True):
        assert sentence in error, words
    assert answer.stdout.split() == ["2"] * len(cases)
