"""Promise: with an export beside a model predict answers the same, and starts without torch and scikit-learn."""

import sys

import pytest
from command_helpers import done, fails
from export_helpers import ANSWER, changed_manifest, manifest_of, remedy, run

RUN = "import sys; from skellipsoid.cli import main; status = main(sys.argv[1:])\n"
#: Lines that are odd in one way each.
LINES = [
    *("wake me at six", "", "   ", "a\ttab", "ünïcödé 左", "\U0001f469\u200d\U0001f4bb off", "\x1b[2J rain \u202e"),
    *("balance " * 5000, "x" * 20_000, "wake me at six", "\ufeffrain", "a\x0bb\u2028c", "it; has, many | marks", "0"),
]


def test_neither_torch_nor_scikit_learn_is_imported(model, alone, open_texts, fresh_python, warm_python):
    heavy = ("torch", "transformers", "sentence_transformers", "sklearn", "scipy", "pandas")
    script = f"{RUN}print([name for name in {heavy} if name in sys.modules], status)"
    lines = "\n".join(["wake me at six", *open_texts])
    process = fresh_python(script, "predict", "--model", model, stdin=lines, encoding="utf-8")
    assert process.stderr == ""
    *answers, last = process.stdout.splitlines()
    assert last == "[] 0"
    whole = warm_python(RUN, "predict", "--model", alone, stdin=lines)
    assert answers == whole.stdout.splitlines()
    assert {answer.partition("\t")[0] for answer in answers} > {"-1"}


@pytest.mark.parametrize(
    "options", [[], ["--json"], ["--open-only"], ["--json", "--open-only", "--quiet"]], ids=" ".join
)
@pytest.mark.parametrize(
    "content",
    [
        "\n".join(LINES).encode(),
        "\r\n".join(LINES).encode("utf-8-sig") + b"\n",
        b"caf\xe9\nwake me\nhalf a surrogate \xed\xa0\x80\n\xff\xfe",
        "wake me\n".encode("utf-16"),
        b"",
        b"\n",
        b"text,label\n" + b"wake me at six,alarm\n" * 30,
    ],
    ids=["odd", "windows", "damaged", "utf-16", "empty", "blank", "table"],
)
def test_lines_are_answered_in_the_same_way(content, options, only_export, alone, give_input, capsys):
    give_input(content)
    expected = run(capsys, "predict", "--model", alone, *options)
    give_input(content)
    assert run(capsys, "predict", "--model", only_export, *options) == expected
    assert bool(expected[0]) == content.startswith("\ufeff".encode("utf-16-le"))


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("a.csv", 'id;message\n1;"wake me\nat seven"\n2;\n3;lights off\n', ["--text-column", "2"]),
        ("a.jsonl", '{"text": "rain \\ud83d tomorrow"}\n{"text": "\\ud83d\\ude00"}\n{"text": ""}\n', []),
        ("a.log", "\n".join(LINES), ["--json"]),
        ("a.tsv", "wake me\talarm\nlights off\n", []),
        ("a.csv", "a,b,c\n1,2,3\n4,5,6\n", []),
        ("a.txt", "", []),
    ],
    ids=["rows", "half an emoji", "log", "broken", "unclear", "empty"],
)
def test_files_are_answered_in_the_same_way(name, content, options, only_export, alone, tmp_path, capsys):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    expected = run(capsys, "predict", "--model", alone, "--data", path, *options)
    assert run(capsys, "predict", "--model", only_export, "--data", path, *options) == expected


def test_who_writes_the_export_alone_decides_no_answer(model, predict_one, capsys):
    """An export with other answers that says it was made of this model, with a right hash of its own."""
    answers = manifest_of(model / "onnx")["answers"]
    changed_manifest(model / "onnx", answers=answers | {"values": ["forged"] * len(answers["values"])})
    note = f"skellipsoid: The export in {str(model / 'onnx')!r} is not the one that the model names, {remedy(model)}"
    assert predict_one(model) == (0, ANSWER, note)
    done(capsys, "export", "--model", model)
    assert predict_one(model) == (0, ANSWER, "")


def test_without_onnxruntime_the_model_answers_and_there_is_no_export(model, capsys, predict_one, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)  # as if it were not installed
    assert predict_one(model) == (0, ANSWER, "")
    assert "onnxruntime" in fails(capsys, "export", "--model", model)  # it compares the graph with the model


@pytest.mark.parametrize("machine", ["one_core", "many_cores"], indirect=True)
@pytest.mark.parametrize("wanted", ["3", "no"])
def test_threads_answer_in_the_order_of_the_lines(
    wanted, machine, model, alone, texts, open_texts, give_input, capsys, monkeypatch
):
    monkeypatch.setenv("OMP_NUM_THREADS", wanted)
    lines = [f"{text} {i % 60}" for i, text in enumerate([*texts, *open_texts] * 40)]
    found = []
    for folder in (alone, model):
        give_input("\n".join(lines))
        found.append(run(capsys, "predict", "--model", folder))
    assert found[0] == found[1]
    assert [line.partition("\t")[2] for line in found[1][1].splitlines()] == lines
