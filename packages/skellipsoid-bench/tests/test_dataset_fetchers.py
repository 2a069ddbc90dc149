"""The fetchers, with a real server on this machine and, where they lie beside the repository, the real files."""

import hashlib
import sys
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from skellipsoid_bench.datasets import _cache, fetch_banking77, fetch_mattress_bot

FILES = {
    "banking/train.tsv": 'text\tlabel\nwhere is my cash\tcash\n"\nsay "hi"\tgreet\na\tb\tc\nwhere is it?\tcash\n',
    "banking/dev.tsv": "text\tlabel\nhello\tgreet\n",
    "banking/test.tsv": "text\tlabel\ncafé?\tcash\nhi\tgreet\n",
}
TRAIN_TEXTS = ["where is my cash", 'say "hi"', "where is it?"]
CONTENTS = {name: text.encode() for name, text in FILES.items()}


BOT = {
    "real/sofmattress_train.csv": 'sentence,label\n"size, please",SIZE\ncan I pay later,EMI\n',
    "real/sofmattress_test.csv": "sentence,label\n😳,NO_NODES_DETECTED\nemi??,EMI\n",
}


@pytest.fixture
def bot(server, monkeypatch):
    """Serve small files of the bot, each at an address of its own."""
    for name, text in BOT.items():
        server.answers[f"elsewhere/{Path(name).name}"] = text.encode()
        monkeypatch.setitem(_cache._URLS, name, f"{server.url}elsewhere/{Path(name).name}")
        monkeypatch.setitem(_cache._SHA256, name, hashlib.sha256(text.encode()).hexdigest())
    return server


@dataclass
class Server:
    """Answers with what a test put into ``answers``."""

    answers: dict[str, bytes]
    url: str = ""
    requests: list[str] = field(default_factory=list)


@pytest.fixture
def server(monkeypatch):
    served = Server(dict(CONTENTS))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            name = self.path.removeprefix("/")
            served.requests.append(name)
            self.send_response(200)
            self.send_header("Content-Length", str(len(served.answers[name])))
            self.end_headers()
            self.wfile.write(served.answers[name])

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        served.url = f"http://127.0.0.1:{http.server_port}/"
        monkeypatch.setattr(_cache, "_BASE_URL", served.url)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield served
        http.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def published(monkeypatch):
    """Let the small files above be the published ones."""
    for name, body in CONTENTS.items():
        monkeypatch.setitem(_cache._SHA256, name, hashlib.sha256(body).hexdigest())


def write_files(home):
    for name, body in CONTENTS.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)


def files_below(home):
    return {path.relative_to(home).as_posix() for path in home.rglob("*") if path.is_file()}


# Download --------------------------------------------------------------------------------------------------------


def test_a_download_that_keeps_failing_says_where_to_put_the_files(server, tmp_path, monkeypatch):
    monkeypatch.setattr(_cache, "_RETRIES", 0)  # save the second that pooch waits before it tries again
    server.answers["banking/train.tsv"] = b"text\tlabel\nevil\tcash\n"
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as closed:
        nobody = f"http://127.0.0.1:{closed.server_port}/"
    for url in (server.url, nobody):
        monkeypatch.setattr(_cache, "_BASE_URL", url)
        with pytest.raises(OSError, match="does not exist, and it could not be downloaded") as info:
            fetch_banking77(data_home=tmp_path)
        message = str(info.value)
        assert f"{url}banking/train.tsv" in message
        assert f"put them into {tmp_path / 'banking'}" in message
        assert "get train.tsv, dev.tsv and test.tsv" in message
        assert files_below(tmp_path) == set()
    assert server.requests == ["banking/train.tsv"]


def test_a_damaged_file_is_replaced(server, tmp_path):
    write_files(tmp_path)
    damaged = tmp_path / "banking/train.tsv"
    damaged.write_bytes(CONTENTS["banking/train.tsv"][:20])
    with pytest.warns(UserWarning, match=r"train.tsv is damaged or changed \(SHA-256 .*; downloading it again") as seen:
        bunch = fetch_banking77(data_home=tmp_path)
    assert seen[0].filename == __file__
    assert bunch.data.tolist() == TRAIN_TEXTS
    assert server.requests == ["banking/train.tsv"]
    assert files_below(tmp_path) == set(FILES)


# What is read ------------------------------------------------------------------------------------------------------


def test_rows_without_exactly_two_fields_are_skipped_and_quotes_kept(tmp_path):
    write_files(tmp_path)
    bunch = fetch_banking77(subset="all", data_home=tmp_path)
    assert bunch.data.tolist() == [*TRAIN_TEXTS, "hello", "café?", "hi"]
    assert bunch.target.tolist() == ["cash", "greet", "cash", "greet", "cash", "greet"]
    assert bunch.split.tolist() == ["train"] * 3 + ["dev"] + ["test"] * 2
    assert bunch.target_names == ["cash", "greet"]
    assert [Path(name).name for name in bunch.filenames] == ["train.tsv", "dev.tsv", "test.tsv"]


def test_the_bot_is_downloaded_from_its_own_addresses(bot, tmp_path):
    test = fetch_mattress_bot(subset="test", data_home=tmp_path)
    assert test.data.tolist() == ["😳", "emi??"]
    assert test.target.tolist() == ["-1", "EMI"]
    assert test.target_names == ["EMI", "SIZE"]
    texts, labels = fetch_mattress_bot(data_home=tmp_path, return_X_y=True)
    assert texts.tolist() == ["size, please", "can I pay later"]
    assert labels.tolist() == ["SIZE", "EMI"]
    assert bot.requests == ["elsewhere/sofmattress_train.csv", "elsewhere/sofmattress_test.csv"]


def test_missing_file_without_pooch(server, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r"needs pooch: pip install 'skellipsoid-bench\[datasets\]', or get "):
        fetch_banking77(data_home=tmp_path)


def test_where_the_files_of_the_bot_are_put(bot, tmp_path):
    with pytest.raises(OSError, match=r"get sofmattress_train\.csv from .*elsewhere.* and put it into .*real"):
        fetch_mattress_bot(data_home=tmp_path, download_if_missing=False)
    with pytest.raises(ValueError, match="subset='dev' names no part of the data: use 'train', 'train_reduced'"):
        fetch_mattress_bot(subset="dev", data_home=tmp_path)


def test_folder_in_the_home(tmp_path, monkeypatch):
    write_files(tmp_path / "skellipsoid_data")
    monkeypatch.delenv("SKELLIPSOID_DATA", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert fetch_banking77(download_if_missing=False).data.tolist() == TRAIN_TEXTS


def test_a_folder_in_the_place_of_a_file(server, tmp_path):
    (tmp_path / "banking" / "train.tsv").mkdir(parents=True)
    with pytest.raises(OSError, match=r"train\.tsv is not a file"):
        fetch_banking77(data_home=tmp_path, download_if_missing=False)
