"""Pages in a real browser: to label on by keyboard, and of figures; and what the commands make of what they save."""

import base64
import json
import re
from hashlib import sha256
from pathlib import Path

import pytest
from command_helpers import done, fails
from file_helpers import write, written

from skellipsoid import add_classes, load, save
from skellipsoid._core.pipelines import split_estimator
from skellipsoid.cli import main
from skellipsoid.cli._pages.page import write_page

#: Messages that pages, tables or browsers might change.
HOSTILE = [
    *("</script><script>document.title = 'run'</script>", "<img src=x onerror=\"document.title = 'run'\">"),
    *("turned \u202e gpj.exe", "nul \x00 bell \x07", "half \ud83d", "a\nline\r\nbreak\tand  blanks ", "=1+1", "'-2"),
    *("<!-- <script>", "long " * 2000),
]
NAMES = ["__proto__", "constructor", "Größe", "a b", "<b>"]


@pytest.fixture(scope="module")
def log(texts, open_texts, tmp_path_factory):
    """A log of requests, of what is new, and of what is hostile."""
    path = tmp_path_factory.mktemp("log") / "log.jsonl"
    lines = [*texts, *open_texts, *HOSTILE]
    path.write_text("".join(json.dumps({"n": i, "text": text}) + "\n" for i, text in enumerate(lines)))
    return path


@pytest.fixture
def reviewed(saved, log, tmp_path, monkeypatch):
    """The page of ``review``, and what it was made of."""
    monkeypatch.chdir(tmp_path)
    assert main(["review", *f"--model {saved} --data {log} -n 40 --text-column text --save new.html".split()]) == 0
    return tmp_path / "new.html"


def data_of(path):
    text = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)[1])


def test_a_page_holds_its_data_as_text_and_may_run_its_own_script_alone(tmp_path):
    data = {"text": "".join(HOSTILE), "classes": NAMES}
    for kind in ("review", "groups"):
        write_page(tmp_path / "page.html", kind, "a </title> of <all>", data)
        text = (tmp_path / "page.html").read_text(encoding="utf-8")
        found = data_of(tmp_path / "page.html")
        assert found.pop("id")
        assert found == data
        policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
        assert policy.startswith("default-src 'none'; ")
        for tag in ("script", "style"):
            own = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.S)
            digest = base64.b64encode(sha256(own[0].encode()).digest()).decode()
            assert len(own) == 1
            assert f"{tag}-src 'sha256-{digest}'" in policy
        assert text.count("<script") == 2


def in_text(rows, text):
    """Whether a text has each row of figures."""
    assert rows
    return all("{right:7}{wrong:8}{rejected:14}{detected:12}".format(**row) in text for row in rows)


def test_a_report_holds_the_figures_of_the_text(tiny_command, table, saved, texts, labels, open_texts, capsys):
    command = f"train --data {table} --save model --finetune none --report --save-report train.html"
    text, data = done(capsys, *command.split()), data_of(Path("train.html"))
    assert in_text(data["threshold"]["rows"], text)
    for row in data["forecasts"]:
        for mean, low, high in row["figures"].values():
            assert f"{mean} ({low}-{high})" in text
    assert len(data["forecasts"]) == 4
    assert "The report is in train.html" in text

    rows = [*zip(texts, labels, strict=True), *((each, "-1") for each in open_texts), ("</script>", "light")]
    write(Path(), written(rows, "\t"), "test.tsv")
    command = f"evaluate --model {saved} --data test.tsv --save-report eval.html"
    text, data = done(capsys, *command.split()), data_of(Path("eval.html"))
    answers = load(saved).predict([text for text, _ in rows]).tolist()
    wrong = {name: [] for name in {*labels, "-1"}}
    for (text_, label), answer in zip(rows, answers, strict=True):
        if answer != label:
            wrong[label].append([text_, answer])
    assert {row["name"]: row["missed"] for row in data["classes"]} == {name: wrong[name] for name in {*labels}}
    assert data["opened"]["missed"] == wrong["-1"]
    assert data["opened"]["detected"] == len(open_texts) - len(wrong["-1"])
    assert in_text(data["threshold"]["rows"], text)
    right = [row["right"] for row in data["classes"]]
    assert right == sorted(right)


def test_a_page_names_the_nearest_training_text_of_each_candidate(fit_model, texts, labels, open_texts, log, tmp_path):
    model = fit_model(finetune="none", keep_texts=True)
    save(add_classes(model, open_texts, ["music"] * len(open_texts)), tmp_path / "model")
    command = f"review --model {tmp_path / 'model'} --data {log} --text-column text -n 40 --save {tmp_path / 'a.html'}"
    assert main(command.split()) == 0
    data, own = data_of(tmp_path / "a.html"), {(text, label) for text, label in zip(texts, labels, strict=True)}
    assert "training texts" in data["notice"]
    for message in data["messages"]:
        for name, nearest in zip(message["candidates"], message["nearest"], strict=True):
            assert (nearest, name) in own or (nearest in ("", *open_texts) and name == "music")
    assert main([*command.replace("a.html", "b.html").split(), "--no-neighbours"]) == 0
    without = data_of(tmp_path / "b.html")
    assert "training texts" not in without["notice"]
    assert not any(any(message["nearest"]) for message in without["messages"])


def opened(browser, path, **options):
    """A page that notes what it asks for and what goes wrong."""
    page = browser.new_context(**options).new_page()
    page.asked, page.wrong = [], []
    page.on("request", lambda request: page.asked.append(request.url))
    page.on("pageerror", lambda error: page.wrong.append(str(error)))
    page.on("console", lambda message: page.wrong.append(message.text))
    page.goto(path.as_uri())
    return page


def downloaded(page, path):
    with page.expect_download() as found:
        page.get_by_role("button", name="Save", exact=True).click()
    found.value.save_as(path)
    return [json.loads(line) for line in path.read_text("ascii").splitlines()]


def test_thirty_labels_by_keyboard_arrive_to_the_letter(browser, reviewed, saved, log, capsys):
    page, data = opened(browser, reviewed), data_of(reviewed)
    messages, wanted = data["messages"], []
    assert len(messages) == 40
    for i, message in enumerate(messages[:36]):
        text = page.locator("blockquote").text_content()
        if message["text"].isprintable():
            assert text == message["text"]
        new, last = NAMES[i // 6 % len(NAMES)], data["classes"][-1]
        keys, label = [
            ("1", message["candidates"][0]),
            ("2", message["candidates"][1]),
            ("0", data["open"]),
            (["/", last[:4].upper(), "Enter"], last),
            (["n", new, "Enter"], new),
            ("s", None),
        ][i % 6]
        for key in keys:
            (page.keyboard.press if key == "Enter" else page.keyboard.type)(key)
        wanted.append(label)
        if i == 20:
            page.reload()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("3")
    wanted[-1] = messages[35]["candidates"][2]
    records = downloaded(page, reviewed.parent / data["saves"])
    assert [record["label"] for record in records] == wanted
    assert [(record["row"], record["digest"]) for record in records] == [
        (message["row"], message["digest"]) for message in messages[:36]
    ]
    assert [url for url in page.asked if not url.startswith(("file:", "blob:"))] == []
    assert page.wrong == []
    assert page.title() == "40 messages to label"
    # What was saved is read back where there is no draft.
    other = opened(browser, reviewed)
    with other.expect_file_chooser() as chooser:
        other.get_by_role("button", name="Open saved labels").click()
    chooser.value.set_files(reviewed.parent / data["saves"])
    other.get_by_text("36 messages read").wait_for()
    assert downloaded(other, reviewed.parent / "again.jsonl") == records

    command = f"learn --model {saved} --data {data['saves']} --log {log} --text-column text --save learned --yes"
    n_skipped = wanted.count(None)
    assert f"{n_skipped} messages of 36 were skipped" in done(capsys, *command.split())
    learned = split_estimator(load(reviewed.parent / "learned"))[1]
    assert learned.changes_[-1]["n_samples"] == 36 - n_skipped
    assert sorted(learned._learned.labels) == sorted(label for label in wanted if label)
    page.context.close()
    other.context.close()


def test_groups_are_named_on_a_page(browser, saved, log, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["traffic", *f"--model {saved} --data {log} --text-column text --save groups.html".split()]) == 0
    data = data_of(tmp_path / "groups.html")
    assert [(group["rows"], len(group["members"])) for group in data["groups"]] == [(8, 8)]  # too few for a second
    members = [{"text": text, "score": "0.5000", "copies": 1} for text in HOSTILE if text != "half \ud83d"]
    data["groups"].append(data["groups"][0] | {"group": 1, "members": members})
    write_page(tmp_path / "groups.html", "groups", "groups", data)
    page = opened(browser, tmp_path / "groups.html")
    page.get_by_label("name of group 1").fill("new name")
    page.get_by_label("name of group 2").fill("new name")
    assert page.get_by_text("One class with group").count() == 2
    page.get_by_role("checkbox").first.uncheck()
    page.reload()
    records = downloaded(page, tmp_path / data["saves"])
    texts = [member["text"] for group in data["groups"][:2] for member in group["members"]][1:]
    assert [record["text"].encode("utf-16", "surrogatepass") for record in records] == [
        text.encode("utf-16", "surrogatepass") for text in texts
    ]
    assert {record["label"] for record in records} == {"new name"}
    assert page.wrong == []
    said = done(capsys, *f"add --model {saved} --data {data['saves']} --save added".split())
    assert f"Added {len(texts)} texts of 1 new class" in said
    page.context.close()


def test_tables_of_a_report_are_sorted_and_its_threshold_moves(browser, tiny_command, saved, tmp_path):
    lines = [("wake me at six", "alarm"), ("balance", "balance"), ("rain", "weather"), ("play jazz", "-1")]
    write(Path(), written([*lines, ("lamp", "light")], "\t"), "test.tsv")
    assert tiny_command(f"evaluate --model {saved} --data test.tsv --save-report {tmp_path / 'eval.html'}".split()) == 0
    page = opened(browser, tmp_path / "eval.html")
    table = page.get_by_role("region", name="Results of each class")
    for order in (False, True):
        table.get_by_role("button", name="class").click()
        names = table.locator("tbody tr td:first-child").all_text_contents()
        assert names == sorted(["alarm", "balance", "light", "weather"], reverse=order)
    before = page.locator("output").text_content()
    page.get_by_label("Move the threshold").fill("100")
    assert page.locator("output").text_content() != before
    assert page.wrong == []
    page.context.close()


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (1440, "dark")])
def test_pages_fit_the_screen_and_can_be_read_aloud(browser, saved, log, reviewed, width, scheme, tmp_path):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    lines = [{"text": text, "label": label} for text, label in zip(HOSTILE, ["alarm", "-1"] * 5, strict=True)]
    (tmp_path / "test.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    commands = [f"traffic --model {saved} --data {log} --text-column text --save groups.html"]
    commands += [f"evaluate --model {saved} --data test.jsonl --save-report report.html"]
    for command in commands:
        assert main(command.split()) == 0
    keys = {reviewed: ["1", "/", "Escape", "n"]}
    for path in (reviewed, tmp_path / "groups.html", tmp_path / "report.html"):
        page = opened(browser, path, viewport={"width": width, "height": 800}, color_scheme=scheme)
        for key in ["", *keys.get(path, [])]:
            if key:
                page.keyboard.press(key)
            found = axe.run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"]})
            assert found.violations_count == 0, found.generate_report()
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        assert page.wrong == []
        page.context.close()


def test_review_says_what_its_page_holds_and_overwrites_none(saved, log, reviewed, capsys):
    data = data_of(reviewed)
    assert "training texts" not in data["notice"]
    assert all(not any(message["nearest"]) for message in data["messages"])
    said = fails(capsys, *f"review --model {saved} --data {log} --save {reviewed}".split())
    assert "pass another file to --save" in said
