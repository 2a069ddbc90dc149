"""The command ``traffic``: how much of a log is open, and groups of what is."""

import csv
import io

import pytest
from command_helpers import done, fails
from file_helpers import write

from skellipsoid import discover_classes, estimate_open_share, load, save
from skellipsoid.cli import main


def test_texts_that_are_answered_open_are_grouped_in_files(all_open, messages, tmp_path, capsys, give_input):
    give_input("\n".join(messages))
    path = tmp_path / "groups.tsv"
    words = ["traffic", "--model", tmp_path / "model", "--save", path]
    out = done(capsys, *words).splitlines()
    wanted = discover_classes(all_open, messages)
    n = (wanted.labels >= 0).sum()
    assert out[-2].startswith(f"{n} of the {len(messages)} texts that are predicted open are in {wanted.n_groups} ")
    assert out[-1] == f"Label the groups in {path}, a line for each; add reads it"
    (tmp_path / "other").mkdir()
    wanted.to_tsv(tmp_path / "other" / "groups.tsv")
    for name in ("groups.tsv", "groups-members.tsv"):
        assert (tmp_path / name).read_bytes() == (tmp_path / "other" / name).read_bytes()
    all_open[-1].offset_ = -1e9
    save(all_open, tmp_path / "model", overwrite=True)
    give_input("\n".join(messages))
    none = f"No group was found among the 0 texts that are predicted open; {path} has none\n"
    assert done(capsys, *words).endswith(none)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("", {"column_1": "a{i}", "column_3": "b{i}"}),
        ("text,message,log_text,label", {"log_text": "b{i}", "log_text_2": "a{i}"}),
    ],
    ids=["no header", "taken"],
)
@pytest.mark.usefixtures("all_open")
def test_columns_of_any_log_get_names_of_their_own(messages, tmp_path, header, expected, capsys):
    log = [text.replace(",", "") for text in messages]
    lines = [f"a{i},{text},b{i},{'-1' if i % 9 == 0 else ''}" for i, text in enumerate(log)]
    path = write(tmp_path, "\n".join([header, *lines]).lstrip("\n"))
    columns = ("message", "label") if header else (2, 4)
    command = ["traffic", "--model", tmp_path / "model", "--data", path, "--save", tmp_path / "groups.tsv"]
    done(capsys, *command, "--text-column", columns[0], "--label-column", columns[1])
    with (tmp_path / "groups-members.tsv").open(newline="") as file:
        members = list(csv.DictReader(file, delimiter="\t"))
    assert len(members) > 20
    for member in members:
        i = log.index(member["text"])
        assert {column: member[column] for column in expected} == {k: v.format(i=i) for k, v in expected.items()}


def test_labels_are_not_overwritten(saved, texts, tmp_path, capsys, monkeypatch):
    path, labelled = tmp_path / "groups.tsv", "group\tlabel\n0\tdonate\n1\t\n"
    words = ["traffic", "--model", str(saved), "--save", str(path)]
    path.write_text("group\tlabel\n0\t\n1\t\n", encoding="utf-8")

    class Typed(io.BytesIO):
        def __next__(self):
            if fill_in:
                path.write_text(labelled, encoding="utf-8")
            return super().__next__()

    for fill_in in (False, True):  # the second time they are filled in meanwhile
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(Typed("\n".join(texts).encode()), encoding="utf-8"))
        assert main(words) == (2 if fill_in else 0)
        said = f"skellipsoid: {str(path)!r} holds 1 label, which --save would overwrite; pass another file to it.\n"
        assert capsys.readouterr().err.endswith(said) is fill_in
    assert path.read_text(encoding="utf-8") == labelled


TICKETS = [f'{i},mail,"wake me, please, at {i}",new' for i in range(12)]


@pytest.mark.parametrize(
    ("lines", "table"),
    [
        (["id,channel,message,status", *TICKETS[:2]], "4 columns with a comma"),
        (TICKETS, "4 columns with a comma"),
        ([f"wake me, please\tat {i}" for i in range(10)], "2 columns with a tab"),
        (["text;label", "wake me;alarm"], "2 columns with a semicolon"),
    ],
)
def test_a_table_on_standard_input_is_noticed(saved, capsys, give_input, lines, table):
    give_input("\n".join(lines))
    said = fails(capsys, "traffic", "--model", saved)
    remedy = "pass the table as a file with --data, or only its column of texts."
    sentence = f"skellipsoid: The input is a table of {table} between them, not a text on each line; {remedy}\n"
    assert said == sentence
    give_input("\n".join(lines))
    assert main(["predict", "--model", str(saved)]) == 0
    out, err = capsys.readouterr()
    assert [line.partition("\t")[2] for line in out.splitlines()] == lines
    assert err.startswith(
        f"skellipsoid: The input is a table of {table} between them, and each line is predicted as one"
    )


def test_labels_of_a_log_are_read_where_they_are(saved, texts, open_texts, tmp_path, capsys):
    path = tmp_path / "log.tsv"
    labels = load(saved).predict(texts)
    rows = [f"{text}\t{label if i % 2 else ''}" for i, (text, label) in enumerate(zip(texts, labels, strict=True))]
    rows += [f"{open_texts[0]}\tsmall_talk", f"{open_texts[1]}\t-1"]
    path.write_text("\n".join(["message\tintent", *rows]), encoding="utf-8")
    words = ["traffic", "--model", saved, "--label-column", "intent"]
    said, *told = done(capsys, *words, "--data", path, "--quiet").splitlines()
    unknown = "because the model does not know the labels 'small_talk' (1), '-1' (1)"
    assert said == f"{len(texts) // 2 + 2} labels, 2 of them open, {unknown}"
    y = [*(label if i % 2 else None for i, label in enumerate(labels)), "-1", "-1"]
    found = estimate_open_share(load(saved), [*texts, *open_texts[:2]], y)
    numbers = [100 * found[name] for name in ("low", "share", "high")]
    assert told[1] == "Open: at least {:.0f} %, about {:.0f} %, at most {:.0f} %".format(*numbers)
    assert found.note is None or told[2] == found.note
    path.write_text("message\tintent\nwake me\t\n", encoding="utf-8")
    said = fails(capsys, *words, "--data", path, "--quiet")
    assert "holds no label; label about 30 texts that are drawn at random" in said
    assert "--label-column names a column of the file of --data" in fails(capsys, *words)
