"""A server on this machine that speaks the interface of the Hugging Face hub, for the hub's real client."""

import base64
import hashlib
import json
import re
import threading
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

TOKEN = "hf_of_the_owner"


@dataclass
class Repository:
    """Commits by their hash, and what the branches point to."""

    commits: dict = field(default_factory=dict)
    branches: dict = field(default_factory=dict)
    #: What keeps others out: "private", "gated", or nothing.
    closed: str = ""

    def commit(self, files, branch="main"):
        """Give a branch other files; gives the hash of the commit."""
        sha = hashlib.sha1(f"{len(self.commits)} {branch} {sorted(files)}".encode()).hexdigest()
        self.commits[sha] = dict(files)
        self.branches[branch] = sha
        return sha

    def find(self, revision):
        """The hash of the commit of a revision, or ``None``."""
        return self.branches.get(revision, revision if revision in self.commits else None)


class Hub(ThreadingHTTPServer):
    """Repositories by their names, and what was asked for."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.repositories, self.requests = {}, []
        #: Content of large files by their SHA-256, and their names.
        self.objects, self.names = {}, {}
        #: Status that all answers have, if any: a hub that is down; and whether its storage takes no files.
        self.status, self.refuses = None, False

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def storage(self):
        """Address of the large files; the hub has another host for them, to which its client sends no token."""
        return f"http://localhost:{self.server_port}"

    def add(self, name, folder, *, closed="", **more):
        """Put the files of a folder into a new repository; gives the hash of the commit."""
        paths = [path for path in sorted(Path(folder).rglob("*")) if path.is_file()]
        files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
        self.repositories[name] = Repository(closed=closed)
        return self.repositories[name].commit(files | more)

    def downloaded(self):
        """How often each file was downloaded."""
        asked = [path for way, path in self.requests if way == "GET"]
        small = (re.fullmatch(rf"/{_REPO}/resolve/[^/]+/(.+)", path) for path in asked)
        large = (self.names.get(path.rpartition("/")[2]) for path in asked if path.startswith("/objects/"))
        return Counter([*(match[2] for match in small if match), *large])


@contextmanager
def running_hub():
    """Run a hub until the end of the block."""
    hub = Hub()
    thread = threading.Thread(target=hub.serve_forever, args=[0.01], daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        hub.shutdown()
        hub.server_close()
        thread.join()


class Handler(BaseHTTPRequestHandler):
    """The part of the interface that loading and pushing a model needs."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        """Print nothing."""

    def do_GET(self):
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = unquote(urlsplit(self.path).path)
        self.server.requests.append((self.command, path))
        if self.server.status or (self.command == "PUT" and self.server.refuses):
            return self._answer(self.server.status or 501)
        for way, pattern, method in _ROUTES:
            if self.command in way.split() and (found := re.fullmatch(pattern, path)):
                return method(self, *found.groups())
        return self._answer(404)

    do_HEAD = do_POST = do_PUT = do_GET

    def _answer(self, status, content=b"", **headers):
        content = json.dumps(content).encode() if isinstance(content, dict | list) else content
        self.send_response(status)
        for name, value in {"Content_Length": len(content), **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _is_owner(self):
        return self.headers.get("Authorization") == f"Bearer {TOKEN}"

    def _readable(self, name):
        """The repository, if whoever asks can read it; otherwise it has answered."""
        repository = self.server.repositories.get(name)
        if repository is None or (repository.closed == "private" and not self._is_owner()):
            self._answer(404 if self._is_owner() else 401, X_Error_Code="RepoNotFound")
        elif repository.closed == "gated" and not self._is_owner():
            self._answer(403, X_Error_Code="GatedRepo")
        else:
            return repository
        return None

    def _file(self, name, revision, path):
        if (repository := self._readable(name)) is None:
            return None
        sha = repository.find(revision)
        if sha is None:
            return self._answer(404, X_Error_Code="RevisionNotFound")
        content = repository.commits[sha].get(path)
        if content is None:
            return self._answer(404, X_Error_Code="EntryNotFound", X_Repo_Commit=sha)
        if not path.endswith(".safetensors"):
            etag = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
            return self._answer(200, content, ETag=f'"{etag}"', X_Repo_Commit=sha)
        oid = hashlib.sha256(content).hexdigest()
        self.server.objects[oid], self.server.names[oid] = content, path
        linked = {"X_Linked_ETag": f'"{oid}"', "X_Linked_Size": len(content), "X_Repo_Commit": sha}
        return self._answer(302, Location=f"{self.server.storage}/objects/{oid}", **linked)

    def _object(self, oid):
        self._answer(200, self.server.objects[oid], ETag=f'"{oid}"')

    def _info(self, name, revision=None):
        if (repository := self._readable(name)) is None:
            return None
        sha = repository.find(revision or "main")
        if sha is None:
            return self._answer(404, X_Error_Code="RevisionNotFound")
        siblings = [{"rfilename": path} for path in repository.commits[sha]]
        return self._answer(200, {"id": name, "sha": sha, "siblings": siblings})

    def _create(self):
        wanted = json.loads(self.body)
        name = f"{wanted['organization']}/{wanted['name']}"
        if not self._is_owner():
            return self._answer(401, {"error": "Invalid username or password."})
        if name in self.server.repositories:
            return self._answer(409, {"error": "You already created this model repo", "url": name})
        self.server.repositories[name] = Repository()
        self.server.repositories[name].commit({".gitattributes": b"*.safetensors filter=lfs\n"})
        return self._answer(200, {"url": f"{self.server.address}/{name}"})

    def _branch(self, name, branch):
        repository = self.server.repositories[name]
        if branch in repository.branches:
            return self._answer(409, {"error": "Reference already exists"})
        repository.branches[branch] = repository.branches["main"]
        return self._answer(200, {})

    def _preupload(self, name, revision):
        paths = [file["path"] for file in json.loads(self.body)["files"]]
        modes = ["lfs" if "safetensors" in path else "regular" for path in paths]
        files = [{"path": p, "shouldIgnore": False, "uploadMode": m} for p, m in zip(paths, modes, strict=True)]
        self._answer(200, {"files": files})

    def _batch(self, name):
        objects = [
            {**each, "actions": {"upload": {"href": f"{self.server.address}/objects/{each['oid']}"}}}
            for each in json.loads(self.body)["objects"]
        ]
        self._answer(200, {"transfer": "basic", "objects": objects})

    def _put(self, oid):
        assert hashlib.sha256(self.body).hexdigest() == oid
        self.server.objects[oid] = self.body
        self._answer(200)

    def _commit(self, name, revision):
        repository = self.server.repositories[name]
        files = dict(repository.commits[repository.find(revision)])
        for line in map(json.loads, self.body.splitlines()):
            value = line["value"]
            if line["key"] == "deletedFolder":
                files = {path: content for path, content in files.items() if not path.startswith(value["path"])}
            elif line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                files[value["path"]] = self.server.objects[value["oid"]]
        sha = repository.commit(files, revision)
        url = f"{self.server.address}/{name}/commit/{sha}"
        self._answer(200, {"commitOid": sha, "commitUrl": url, "success": True})

    def _yaml(self):
        self._answer(200, {"errors": [], "warnings": []})


_REPO = r"([^/]+/[^/]+)"
_ROUTES = [
    ("HEAD GET", rf"/{_REPO}/resolve/([^/]+)/(.+)", Handler._file),
    ("HEAD GET", r"/objects/(\w+)", Handler._object),
    ("GET", rf"/api/models/{_REPO}(?:/revision/(.+))?", Handler._info),
    ("POST", "/api/repos/create", Handler._create),
    ("POST", "/api/validate-yaml", Handler._yaml),
    ("POST", rf"/api/models/{_REPO}/branch/(.+)", Handler._branch),
    ("POST", rf"/api/models/{_REPO}/preupload/(.+)", Handler._preupload),
    ("POST", rf"/api/models/{_REPO}/commit/(.+)", Handler._commit),
    ("POST", rf"/{_REPO}\.git/info/lfs/objects/batch", Handler._batch),
    ("PUT", r"/objects/(\w+)", Handler._put),
]


@contextmanager
def client_of(hub, cache, monkeypatch):
    """Let the hub's client of this process ask a hub, with a cache of its own, and nobody logged in."""
    from huggingface_hub import close_session, constants

    monkeypatch.delenv("HF_TOKEN", raising=False)
    settings = {
        "ENDPOINT": hub.address,
        "HUGGINGFACE_CO_URL_TEMPLATE": hub.address + "/{repo_id}/resolve/{revision}/{filename}",
        "HF_HUB_CACHE": str(cache),
        "HF_TOKEN_PATH": str(cache / "no-token"),
        "HF_HUB_OFFLINE": False,
        "HF_HUB_DISABLE_XET": True,  # its storage has a protocol of its own
    }
    for name, value in settings.items():
        monkeypatch.setattr(constants, name, value)
    try:
        yield
    finally:
        close_session()


def refusal(error, call, *arguments, **options):
    """The one sentence, without the token, of the error with which a call ends."""
    with pytest.raises(error) as caught:
        call(*arguments, **options)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert TOKEN not in sentence
    assert len(re.findall(r"\.(?: |$)", sentence)) == 1
    return sentence
