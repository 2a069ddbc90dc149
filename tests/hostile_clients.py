"""Clients that do harm to a server: they send too much, too slowly or nothing, go, and read nothing."""

import json
import random
import re
import socket
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from statistics import median

from serve_helpers import ask

HEAD = b"POST /predict HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
#: The time of an attack has so many parts, and the memory of each counts by its median.
_N_PARTS = 10
#: After so many parts the server has met all kinds of requests.
_EARLY = 3
#: A request of few bytes.
SMALL = HEAD + b'content-length: 12\r\n\r\n{"text":"a"}'


def connect(server, source="127.0.0.1", seconds=20):
    """A connection from an address; all of 127 are this machine's."""
    return socket.create_connection(("127.0.0.1", server.port), timeout=seconds, source_address=(source, 0))


def memory(server, name="VmRSS"):
    """MiB of a server."""
    with open(f"/proc/{server.process.pid}/status", encoding="utf-8") as file:
        return int(re.search(rf"^{name}:\s+(\d+) kB", file.read(), re.M)[1]) / 1024


class Hostile:
    """Clients that do harm, each in a thread, until they are told to stop."""

    def __init__(self, server):
        self.server, self.stop = server, threading.Event()
        kinds = [self.ahead, self.silent, self.trickling, self.large, self.gone, self.unread, self.junk, self.varied]
        self.threads = [threading.Thread(target=self._repeat, args=[kind]) for kind in kinds]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        for thread in self.threads:
            thread.join()

    def _repeat(self, kind):
        while not self.stop.is_set():
            with suppress(OSError), ExitStack() as stack:
                kind(lambda: stack.enter_context(connect(self.server, "127.0.0.66")))
            self.stop.wait(0.05)

    def ahead(self, opens):
        opened = opens()
        for _ in range(100):
            opened.sendall(SMALL * 2000)

    def silent(self, opens):
        kept = [opens() for _ in range(30)]
        self.stop.wait(1)
        del kept

    def trickling(self, opens):
        opened = opens()
        for byte in HEAD:
            opened.sendall(bytes([byte]))
            if self.stop.wait(0.05):
                return

    def large(self, opens):
        for opened in [opens() for _ in range(20)]:
            opened.sendall(HEAD + b"content-length: 1000000\r\n\r\n" + b" " * 900_000)

    def gone(self, opens):
        for _ in range(20):
            body = json.dumps({"texts": ["wake me at six"] * 100}).encode()
            opened = opens()
            opened.sendall(HEAD + b"content-length: %d\r\n\r\n%s" % (len(body), body))
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            opened.close()  # by a reset

    def unread(self, opens):
        opened = opens()
        for _ in range(200):
            opened.sendall(SMALL)

    def junk(self, opens):
        opens().sendall(b"\x00\xff GET\r\n\r\n" * 500)

    def varied(self, opens):
        rng = random.Random(time.monotonic_ns())
        opened = opens()
        for _ in range(20):
            body = varied_body(rng)
            opened.sendall(HEAD + b"content-length: %d\r\n\r\n%s" % (len(body), body))
            opened.recv(2**16)


def varied_body(rng):
    """A body of one byte to a megabyte: texts of all lengths and letters, too many of them, or none."""
    n_texts, n_letters = int(10 ** rng.uniform(0, 2.5)), int(10 ** rng.uniform(0, 3.4))
    first = rng.choice([0x20, 0x61, 0x430, 0x4E00, 0x1F600])
    letters = [chr(first + i) for i in range(26)] + [" "] * 5
    texts = ["".join(rng.choices(letters, k=rng.randint(1, n_letters))) for _ in range(n_texts)]
    body = json.dumps({rng.choice(["texts", "texts", "texts", "others"]): texts}, ensure_ascii=rng.random() < 0.5)
    return body.encode()[: rng.choice([2**20, 2**20, 2**20, rng.randint(1, 2**20)])]


def attack(server, texts, seconds):
    """Let hostile clients from one address work for some time, and ask from another; gives figures of both."""
    for text in texts:
        server.post({"text": text})
    expected = dict(zip(texts, server.post({"texts": texts})[1], strict=True))
    with ThreadPoolExecutor(8) as pool:  # batches as large as those of the clients, and as many at a time
        for _ in range(3):
            list(pool.map(lambda _: server.post({"texts": ["wake me at six"] * 100}), range(8)))
    server.counter("texts_total")
    start, number, parts = time.monotonic(), 0, [[] for _ in range(_N_PARTS)]
    found = {"statuses": set(), "wrong": 0, "answers": 0, "slowest": 0.0, "handles": 0, "before": memory(server)}
    with Hostile(server):
        while (begin := time.monotonic()) < start + seconds:
            parts[int((begin - start) / seconds * _N_PARTS)].append(memory(server))
            text = texts[number % len(texts)]
            number += 1
            with closing(server.connect()) as connection:
                status, answer = ask(connection, "POST", "/predict", {"text": text})
                found["statuses"] |= {status, ask(connection, "GET", "/health")[0]}
            found["wrong"] += status != 200 or answer["label"] != expected[text]["label"]
            found["answers"] += status == 200
            found["slowest"] = max(found["slowest"], time.monotonic() - begin)
            found["handles"] = max(found["handles"], handles(server))
            time.sleep(0.1)
    time.sleep(4)
    resident = [median(part) for part in parts if part]
    return found | {
        "handles after": handles(server),
        "resident": resident,
        "growth": max(resident) - resident[0],
        "late growth": max(resident[_EARLY:]) - resident[_EARLY - 1],
    }


def handles(server):
    """Files and connections that a server has open."""
    return len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))
