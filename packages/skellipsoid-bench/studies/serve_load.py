"""Load of 32 connections on the example's server: a saved model (torch) beside the same one exported, in turns.

python studies/serve_load.py --save results/serve_load.rst
"""

import argparse
import asyncio
import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np
from sklearn.pipeline import Pipeline

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder, datasets, export_onnx, save

ROOT = Path(__file__).parents[3]
TICKS = os.sysconf("SC_CLK_TCK")


def main():
    """Start both servers, ask them in turns, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--seconds", type=int, default=60, help="of load on each server, in turns of ten seconds")
    parser.add_argument("--save", type=Path, help="write the table to this file")
    options = parser.parse_args()
    train = datasets.load_assistant_intents(subset="train")
    texts = datasets.load_assistant_intents(subset="test").data.tolist()
    pipe = Pipeline([("enc", SupConTextEncoder(random_state=0)), ("clf", EllipsoidOpenSetClassifier(random_state=0))])
    pipe.fit(train.data, train.target)
    with tempfile.TemporaryDirectory() as parent:
        save(pipe, f"{parent}/saved")
        export_onnx(pipe, f"{parent}/exported")
        servers = {"torch": Server(f"{parent}/saved"), "runtime": Server(f"{parent}/exported")}
        try:
            answers = {name: server.ready(texts) for name, server in servers.items()}
            equal = sum(map(str.__eq__, *answers.values()))
            for _ in range(max(1, options.seconds // 10)):
                for server in servers.values():
                    server.load(texts, options.connections, min(10, options.seconds))
            rows = [[name, *server.row()] for name, server in servers.items()]
        finally:
            for server in servers.values():
                if server.process is not None:
                    server.process.kill()
                    server.process.wait()
    ratios = [a / b for a, b in zip(servers["runtime"].rates, servers["torch"].rates, strict=True)]
    lines = table(["Server", "Requests/s", "Median", "99 % within", "CPU each", "MiB", "Errors"], rows)
    lines += [
        "",
        f"{options.connections} connections, one text a request, {options.seconds} s on each server in turns of ten "
        f"seconds; {equal} of {len(texts)} labels are equal.",
        f"The runtime answered {statistics.median(ratios):.1f} times as many requests (median over the turns), on "
        f"{os.cpu_count()} cores with {os.getloadavg()[0]:.0f} running programs, client and servers among them.",
    ]
    print("\n".join(lines))
    if options.save:
        options.save.write_text("\n".join(lines) + "\n", encoding="utf-8")


class Server:
    """A process of ``examples/serve_fastapi.py``, and the seconds of the requests to it."""

    def __init__(self, folder):
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            self.port = listener.getsockname()[1]
        paths = os.pathsep.join(map(str, (ROOT, ROOT / "packages" / "skellipsoid-runtime")))
        environment = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "SKELLIPSOID_MODEL": folder}
        command = ["uvicorn", "--app-dir", str(ROOT / "examples"), "serve_fastapi:app", "--log-level", "warning"]
        self.command = [sys.executable, "-m", *command, "--port", str(self.port)]
        self.environment = environment
        self.process = None
        self.seconds, self.rates, self.cpu, self.errors = [], [], 0.0, 0

    def ready(self, texts):
        """Start; give the labels of some texts."""
        self.process = subprocess.Popen(self.command, env=self.environment)
        while True:
            if self.process.poll() is not None:
                raise RuntimeError(self.command)
            try:
                self.labels(texts[:1])
                break
            except OSError:
                time.sleep(0.02)
        return [label for start in range(0, len(texts), 256) for label in self.labels(texts[start : start + 256])]

    def labels(self, texts):
        """Ask once."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/predict", body(texts), method="POST")
        with urllib.request.urlopen(request, timeout=60) as response:
            return [answer["label"] for answer in json.load(response)]

    def load(self, texts, n_connections, n_seconds):
        """Ask over some connections, each as soon as it has its answer, for some seconds."""
        before, n_before, begin = self.used(), len(self.seconds), time.perf_counter()
        asyncio.run(self._connections(texts, n_connections, begin + n_seconds))
        self.rates.append((len(self.seconds) - n_before) / (time.perf_counter() - begin))
        self.cpu += self.used() - before

    async def _connections(self, texts, n_connections, end):
        await asyncio.gather(*(self._ask(texts[number:] + texts[:number], end) for number in range(n_connections)))

    async def _ask(self, texts, end):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        number = 0
        while (begin := time.perf_counter()) < end:
            content = body([texts[number % len(texts)]])
            writer.write(b"POST /predict HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%b" % (len(content), content))
            headers = await reader.readuntil(b"\r\n\r\n")
            (length,) = [line[16:] for line in headers.lower().split(b"\r\n") if line.startswith(b"content-length: ")]
            await reader.readexactly(int(length))
            self.errors += b" 200 " not in headers.split(b"\r\n")[0]
            self.seconds.append(time.perf_counter() - begin)
            number += 1
        writer.close()
        await writer.wait_closed()

    def used(self):
        """CPU seconds of the process until now."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def row(self):
        """Figures of the table."""
        resident = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * resource.getpagesize() / 2**20
        middle, late = 1000 * np.quantile(self.seconds, (0.5, 0.99))
        cpu = 1000 * self.cpu / len(self.seconds)
        rate = statistics.median(self.rates)
        return (
            *(f"{rate:.0f}", f"{middle:.0f} ms", f"{late:.0f} ms", f"{cpu:.1f} ms"),
            *(f"{resident:.0f}", str(self.errors)),
        )


def body(texts):
    """Give the JSON of a request."""
    return json.dumps({"texts": texts}).encode()


def table(header, rows):
    """Lay out a table in reStructuredText."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    rule = "  ".join("=" * width for width in widths)

    def line(cells):
        return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()

    return [rule, line(header), rule, *map(line, rows), rule]


if __name__ == "__main__":
    main()
