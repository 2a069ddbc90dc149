"""Promise: the files of bots are read as they are, what is left out is said, and what cannot be read is one sentence.

The files have the forms of public ones: RasaHQ/rasa-demo (``data/nlu/``; ``nlu.md`` and ``nlu.json`` in its history),
mdmsua/BahnBot (Dialogflow ES), Yash-Kavaiya/BankBuddy (Dialogflow CX), ``CognitiveModels/FlightBooking.json`` of
Microsoft's bots (LUIS), and the page on data formats of MicrosoftDocs/azure-docs (CLU).
"""

import json
import os
import warnings
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skellipsoid._bot_files import bot_members
from skellipsoid._bot_files.strict_yaml import read_yaml
from skellipsoid._core.warn import LossWarning
from skellipsoid.datasets import load_text_file

NLU = """version: "2.0"
nlu:
- intent: out_of_scope/other
  examples: |
    - I am asking you an out of scope question
    - Do you know [Kevin Pelton](name)?
    -- again?
- intent: "yes"
  examples: |
    - to [nyc]{"entity": "city", "value": "New York"} from [la][{"entity": "city"}, {"entity": "from"}]
- intent: null
  examples:
  - text: |
      - nothing at all
- intent: 12:30
  examples: |
    - half past twelve
- intent: 007
  examples: |
    - bond
- synonym: nyc
  examples: |
    - big apple
"""
MARKDOWN = """## intent:greet
- hey
<!-- - hidden -->
* hello [Sara](bot:sara)
## synonym:x
- y
## intent: bye
- see you
"""
JSON = {"rasa_nlu_data": {"common_examples": [{"text": "hey", "intent": "greet", "entities": []}, {"text": "well"}]}}


def es(*texts, lang="de", template=False):
    """Phrases of an intent, the last word of each annotated."""
    parts = [[{"text": text.rpartition(" ")[0] + " "}, {"text": text.rpartition(" ")[2]}] for text in texts]
    return json.dumps([{"data": each, "isTemplate": template, "count": 0, "lang": lang} for each in parts])


def cx(*texts, language="en"):
    """Phrases of an intent in one language."""
    phrases = [{"parts": [{"text": text, "auto": True}], "repeatCount": 1, "languageCode": language} for text in texts]
    return json.dumps({"trainingPhrases": phrases})


ES = {
    "agent.json": "{}",
    "intents/Auskunft_ Ja.json": json.dumps({"name": "Auskunft: Ja"}),
    "intents/Auskunft_ Ja_usersays_de.json": es("ja bitte", "na klar"),
    "intents/Reise.json": json.dumps({"name": "Reise", "fallbackIntent": False}),
    "intents/Reise_usersays_de.json": es("von Ulm nach Bonn"),
    "intents/Default Fallback Intent.json": json.dumps({"name": "Default Fallback Intent", "fallbackIntent": True}),
}
CX = {
    "intents/Cards/Cards.json": json.dumps({"displayName": "Cards"}),
    "intents/Cards/trainingPhrases/en.json": cx("block my card", "a new card"),
    "intents/Loans/Loans.json": json.dumps({"displayName": "Loans"}),
    "intents/Loans/trainingPhrases/en.json": cx("a loan please"),
}
LUIS_TEXTS = [{"text": "fly to paris", "intent": "BookFlight", "entities": []}, {"text": "a joke?", "intent": "None"}]
LUIS = {"luis_schema_version": "3.2.0", "culture": "en-us", "utterances": LUIS_TEXTS}
CLU_TEXTS = [
    {"text": "read my mail", "intent": "Read", "language": "en-us", "dataset": "Train"},
    {"text": "lies die Post", "intent": "Read", "language": "de", "dataset": "Train"},
]
CLU = {"projectFileVersion": "2022-10-01-preview", "assets": {"projectKind": "Conversation", "utterances": CLU_TEXTS}}


def written(folder, files):
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return folder


def zipped(path, files):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def read(path, **options):
    """Texts with their labels, and the sentence on what was read, which is a warning if something was left out."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = load_text_file(path, **options)
    is_cut = any(word in found.DESCR for word in ("left out", "not read", "not followed"))
    assert [(str(each.message), each.category) for each in said] == [(found.DESCR, LossWarning)] * is_cut
    rows = list(zip(found.data.tolist(), found.target.tolist(), strict=True))
    return rows, found.DESCR.removeprefix(f"{str(path)!r}: ")


def test_a_rasa_project(tmp_path):
    project = {
        "data/nlu/nlu.yml": NLU,
        "data/nlu/old.md": MARKDOWN,
        "data/nlu/old.json": JSON,
        "data/responses.yml": "responses:\n  utter: &a\n  - text: *a\n",
        "domain.yml": "intents: [greet]\nintents: [bye]\n",
        "tests/test_stories.yml": "nlu:\n- intent: greet\n  examples: |\n    - of a test\n",
        "train_test_split/test_data.yml": "nlu: []\n",
        ".rasa/cache.yml": "nlu: [",
        "README.md": "# no intent: caf\xe9",
    }
    folder = written(tmp_path / "bot", project)
    (folder / "README.md").write_bytes(b"caf\xe9")
    os.symlink(folder / "tests", folder / "data" / "link")
    rows, note = read(folder)
    assert rows == [
        ("I am asking you an out of scope question", "out_of_scope/other"),
        ("Do you know Kevin Pelton?", "out_of_scope/other"),
        *[("again?", "out_of_scope/other"), ("to nyc from la", "yes"), ("nothing at all", "null")],
        *[("half past twelve", "12:30"), ("bond", "007")],
        *[("hey", "greet"), ("hey", "greet"), ("hello Sara", "greet"), ("see you", "bye")],
    ]
    assert note == (
        "Rasa, 7 intents, 11 texts of 3 files; entities removed; tests/, train_test_split/ not read; 1 text without an "
        "intent left out; link data/link not followed; 1 copy across files."
    )
    assert read(folder / "tests")[0] == [("of a test", "greet")]


ES_ROWS = [("ja bitte", "Auskunft: Ja"), ("na klar", "Auskunft: Ja"), ("von Ulm nach Bonn", "Reise")]
CX_ROWS = [("block my card", "Cards"), ("a new card", "Cards"), ("a loan please", "Loans")]


@pytest.mark.parametrize(
    ("files", "rows", "kind"), [(ES, ES_ROWS, "Dialogflow ES"), (CX, CX_ROWS, "Dialogflow CX")], ids=["ES", "CX"]
)
def test_dialogflow_as_folder_and_as_zip(tmp_path, files, rows, kind):
    note = f"{kind}, 2 intents, 3 texts of 2 files."
    assert read(written(tmp_path / "agent", files)) == (rows, note)
    assert read(zipped(tmp_path / "agent.zip", {f"agent/{name}": text for name, text in files.items()})) == (rows, note)


def test_one_language_of_several(tmp_path):
    path = zipped(tmp_path / "agent.zip", {**ES, "intents/Reise_usersays_en.json": es("to Bonn", lang="en")})
    with pytest.raises(ValueError, match=r"of 2 languages: de \(3\), en \(1\); choose one, such as language de"):
        load_text_file(path)
    note = "Dialogflow ES, 1 intent, 1 text of 1 file; 3 texts of other languages not read."
    assert read(path, language="EN") == ([("to Bonn", "Reise")], note)
    with pytest.raises(ValueError, match=r"^language fr is none of .*, which holds de \(3\), en \(1\); name one"):
        load_text_file(path, language="fr")
    (tmp_path / "plain.csv").write_text("text,label\nhey,greet\n", encoding="utf-8")
    with pytest.raises(ValueError, match="names no language of its texts; leave language out"):
        load_text_file(tmp_path / "plain.csv", language="en")


def test_luis_clu_and_semantic_router(tmp_path):
    routes = {"routes": [{"name": "chat", "utterances": ["hi", "hello"]}]}
    folder = written(tmp_path, {"luis.json": LUIS, "clu/clu.json": json.dumps(CLU, indent=1), "router.json": routes})
    assert read(folder / "router.json")[0] == [("hi", "chat"), ("hello", "chat")]
    assert read(folder / "luis.json")[0] == [("fly to paris", "BookFlight"), ("a joke?", "None")]
    assert read(folder / "clu", language="de")[0] == [("lies die Post", "Read")]
    with pytest.raises(ValueError, match="2 languages"):
        load_text_file(folder / "clu/clu.json")


def test_fasttext(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("__label__greet hello, you\n__label__bye\tsee you\n\n__label__bye\n", encoding="utf-8")
    note = "fastText, 2 intents, 2 texts of 1 file; 1 line without a text left out."
    assert read(path) == ([("hello, you", "greet"), ("see you", "bye")], note)
    path.write_text("__label__a __label__b both\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"^Line 1 of .* has 2 labels, but each line needs one"):
        load_text_file(path)


def test_a_folder_of_classes(tmp_path):
    lines = written(tmp_path / "lines", {"greet.txt": "hey\nhello\n", "bye.txt": "see you\n", "notes.pdf": "?"})
    note = "a folder of classes, 2 intents, 3 texts of 2 files; each line a text; 1 file of another kind left out."
    assert read(lines) == ([("see you", "bye"), ("hey", "greet"), ("hello", "greet")], note)
    files = {f"news/{label}/{i}.txt": f"{label}\nis {i}" for label in ("a", "b") for i in range(2)}
    rows = [(f"{label}\nis {i}", label) for label in ("a", "b") for i in range(2)]
    note = "a folder of classes, 2 intents, 4 texts of 4 files; each file a text."
    assert read(written(tmp_path / "files", files)) == (rows, note)
    assert read(zipped(tmp_path / "files.zip", files)) == (rows, note)


UNREADABLE = [
    ("nlu.yml", "nlu:\n- intent: a\n  intent: b\n", "Line 3 of .* has the key 'intent' a second time; join the two"),
    ("nlu.yml", "x: &a [1]\nnlu: *a\n", r"Line 1 of .* has an anchor that an alias \(\*name\) repeats"),
    ("nlu.yml", "nlu:\n- intent: [a\n", r"Line 3 of .* is no YAML \(.*\); correct it"),
    ("nlu.yml", "nlu:\n- intent: a\n  examples: caf\udce9\n", "Line 3 of .* is not UTF-8; name the encoding"),
    ("domain.yml", "intents:\n- greet\n", "is YAML without intents below 'nlu', as Rasa writes them"),
    ("nlu.json", '{"rasa_nlu_data": ', "is no JSON of Rasa"),
    ("nlu.yml", "\ufeff<!doctype html>\n<html>", "is an HTML page"),
    ("nlu.md", "%PDF-1.4\n## intent:greet\n- hi\n", "is a PDF document; copy the messages into a text file"),
]


@pytest.mark.parametrize(("name", "content", "sentence"), UNREADABLE)
def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path, name, content, sentence):
    path = tmp_path / name
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(ValueError, match=sentence) as caught:
        load_text_file(path)
    assert "\n" not in str(caught.value)


def test_folders_and_zips_that_cannot_be_read(tmp_path, monkeypatch):
    damaged, locked = tmp_path / "damaged.zip", zipped(tmp_path / "locked.zip", ES)
    damaged.write_bytes(b"PK\x03\x04 and no more")
    content = bytearray(locked.read_bytes())
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):  # the flag of a password
        content[content.index(mark) + place] = 1
    locked.write_bytes(content)
    empty = written(tmp_path / "empty", {"a.csv": "text,label\n"})
    for path, sentence in (
        (empty, "holds no training texts of a kind that is read"),
        (written(tmp_path / "both", {**ES, "luis.json": LUIS}), "holds texts of Dialogflow ES and LUIS"),
        (zipped(tmp_path / "a.zip", {**ES, "b.zip": "PK"}), "holds another zip, 'b.zip'; unpack it"),
        (damaged, "is a damaged zip"),
        (locked, "has a password"),
    ):
        with pytest.raises(ValueError, match=sentence):
            load_text_file(path)
    agent = zipped(tmp_path / "agent.zip", ES)
    monkeypatch.setattr(bot_members, "MOST_UNPACKED", 300)
    with pytest.raises(ValueError, match="is too large: one file may have 50 MB, all files of a zip"):
        load_text_file(agent)
    monkeypatch.setattr(bot_members, "MOST_MEMBERS", 3)
    with pytest.raises(ValueError, match="holds 6 files, but a zip may hold 3"):
        load_text_file(agent)
    monkeypatch.setattr(bot_members, "MOST_BYTES", 100)
    with pytest.raises(ValueError, match="MB; divide it"):
        load_text_file(written(tmp_path, {"nlu.yml": NLU}) / "nlu.yml")


@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1),
        st.text("ab \n-[]():{}'\"#&*!|>%@~01"),
    )
)
def test_yaml_gives_back_what_was_written(values):
    # Every JSON of texts is YAML.
    assert read_yaml(json.dumps(values, ensure_ascii=False), "x") == values


def test_templates_are_left_out_and_said(tmp_path):
    files = {**ES, "intents/Ticket_usersays_de.json": es("@sys.number Karten", template=True)}
    assert read(written(tmp_path, files))[1] == "Dialogflow ES, 2 intents, 3 texts of 2 files; 1 template left out."
