"""Measure the proxy for calls to language models: `python -m benchmarks.proxy`.

First, the same calls go to a model server directly, through the proxy without memory, and with it, in turns. Beside them
stands the recall alone. Then many streams run at a time: each event has the time at which the model server sent it, so
the command can print the delay of events, and it checks that each stream arrived in full and that its answer is stored.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import urlsplit

import httptools
import uvloop

from benchmarks.measurement.meter import cpu_seconds, percentile, rss_bytes
from benchmarks.setup.http import Connection, connect, request
from benchmarks.setup.stack import Process, Stack, child_environment, free_port, running

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n"
_SENT = re.compile(rb'"content": "([0-9.]+) "')
_QUESTIONS = 40
_PER_SECOND = 25  # new streams


class _Model(asyncio.Protocol):
    """A model server whose answers are the times at which it sends their words."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._parser = httptools.HttpRequestParser(self)
        self._body = b""

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        body, self._body = json.loads(self._body), b""
        self._task = asyncio.ensure_future(self._answer(body.get("words", 1), body.get("pause", 0.0), bool(body.get("stream"))))

    async def _answer(self, words: int, pause: float, streams: bool) -> None:
        write = self._transport.write  # type: ignore[attr-defined]
        if not streams:
            answer = json.dumps({"choices": [{"index": 0, "message": {"role": "assistant", "content": "Understood."}}]}).encode()
            write(_HEAD % b"application/json" + b"%x\r\n%s\r\n0\r\n\r\n" % (len(answer), answer))
            return
        write(_HEAD % b"text/event-stream")
        for _ in range(words):
            await asyncio.sleep(pause)
            event = {"choices": [{"index": 0, "delta": {"content": f"{time.monotonic():.6f} "}}]}
            line = f"data: {json.dumps(event)}\n\n".encode()
            write(b"%x\r\n%s\r\n" % (len(line), line))
        write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")


async def _serve_model(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(_Model, "127.0.0.1", port, backlog=2048)
    print("listens", flush=True)
    await server.serve_forever()


def _call(path: str, body: object, **headers: str) -> bytes:
    """Return a request with more headers."""
    more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    head, _, rest = request("POST", path, json.dumps(body).encode()).partition(b"\r\n")
    return head + b"\r\n" + more.encode() + rest


async def measure_latency(stack: Stack, model: str, requests: int) -> None:
    """Print latencies and CPU times of calls with the same questions, in turns."""
    api, direct = await connect(stack.apis[0]), await connect(model)
    asked = [{"role": "user", "content": f"Which nuts is person {number} allergic to?"} for number in range(_QUESTIONS)]

    def proxied(mode: str) -> Callable[[int], Awaitable[bytes]]:
        def call(number: int) -> Awaitable[bytes]:
            messages = [asked[number % _QUESTIONS]]
            headers = {"X_Memory_User": "ada", "X_Memory_Session": f"{mode}-{number}", "X_Memory": mode, "Authorization": "Bearer k"}
            return api.expect(_call("/proxy/v1/chat/completions", {"model": "m", "messages": messages}, **headers))

        return call

    def recall(number: int) -> Awaitable[bytes]:
        body = {"query": asked[number % _QUESTIONS]["content"], "user_id": "ada", "long_term_search": True, "format": "anthropic"}
        return api.expect(_call("/v1/memory/prompt", body))

    def plain(number: int) -> Awaitable[bytes]:
        return direct.expect(_call("/v1/chat/completions", {"model": "m", "messages": [asked[number % _QUESTIONS]]}))

    kinds = {
        "direct": plain,
        "recall alone": recall,
        "proxy, off": proxied("off"),
        "proxy, read": proxied("read"),
        "proxy, on": proxied("on"),
    }
    seconds: dict[str, list[float]] = {name: [] for name in kinds}
    cpu = dict.fromkeys(kinds, 0.0)
    (pid,) = stack.pids["api"]
    for number in range(requests + _QUESTIONS):
        for name, call in kinds.items():
            begun, used = time.perf_counter(), cpu_seconds(pid)
            await call(number)
            if number >= _QUESTIONS:  # the first calls fill the caches
                seconds[name].append(time.perf_counter() - begun)
                cpu[name] += cpu_seconds(pid) - used
    for name in kinds:
        p50, p95 = (1000 * percentile(seconds[name], share) for share in (0.5, 0.95))
        print(f"{name:14} p50 {p50:6.2f} ms   p95 {p95:6.2f} ms   CPU of the API {1000 * cpu[name] / requests:5.2f} ms")
    p50s = {name: 1000 * percentile(times, 0.5) for name, times in seconds.items()}
    for mode in ("read", "on"):
        print(f"added beside recall and the model, {mode}: p50 {p50s[f'proxy, {mode}'] - p50s['recall alone'] - p50s['direct']:.2f} ms")


async def measure_streams(stack: Stack, streams: int, words: int, pause: float) -> None:
    """Print the delays of events while this many streams run at a time."""
    (pid,) = stack.pids["api"]
    delays: list[float] = []
    under_way = most = in_full = 0
    refusals = Counter[str]()
    where = urlsplit(stack.apis[0])

    async def talk(number: int) -> None:
        nonlocal under_way, most, in_full
        await asyncio.sleep(number / _PER_SECOND)
        body = {"model": "m", "stream": True, "words": words, "pause": pause}
        body["messages"] = [{"role": "user", "content": f"Person {number % _QUESTIONS} talks about stream {number}."}]
        call = _call("/proxy/v1/chat/completions", body, X_Memory_User=f"user{number}", X_Memory_Session="s")
        while True:
            reader, writer = await asyncio.open_connection(where.hostname, where.port)
            writer.write(call)
            if b" 200 " in (status := await reader.readline()):
                break
            # The SDKs of model providers try again, too.
            refusals[status.decode().strip()] += 1
            writer.close()
            await asyncio.sleep(1)
        under_way += 1
        most = max(most, under_way)
        rest, count = b"", 0
        while b"0\r\n\r\n" not in rest[-5:] and (piece := await reader.read(65536)):
            now = time.monotonic()
            rest = rest[-400:] + piece
            for sent in _SENT.finditer(rest):
                delays.append(now - float(sent[1]))
                count += 1
            rest = rest[max((sent.end() for sent in _SENT.finditer(rest)), default=0) :]
        under_way -= 1
        in_full += count == words and b"[DONE]" in rest
        writer.close()

    used, begun = cpu_seconds(pid), time.monotonic()
    await asyncio.gather(*(talk(number) for number in range(streams)))
    took, used = time.monotonic() - begun, cpu_seconds(pid) - used
    p50, p95, p99 = (1000 * percentile(delays, share) for share in (0.5, 0.95, 0.99))
    print(f"refused and tried again: {dict(refusals)}")
    print(f"streams: {streams}, at a time {most}, in full {in_full}; {len(delays) / took:.0f} events/s")
    print(f"delay of an event: p50 {p50:.1f} ms, p95 {p95:.1f} ms, p99 {p99:.1f} ms")
    print(f"API: CPU {100 * used / took:.0f} % of a core, {rss_bytes(pid) / 2**20:.0f} MiB")
    api, stored = await connect(stack.apis[0]), 0
    for number in range(streams):
        session = json.loads(await api.expect(request("GET", f"/v1/working-memory/s?user_id=user{number}")))
        stored += len(session["messages"]) == 2 and session["messages"][1]["content"].count(".") == words
    print(f"stored in full: {stored}")


async def main() -> None:
    """Read the arguments, start everything, and measure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.proxy", description=__doc__)
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--words", type=int, default=60)
    parser.add_argument("--pause", type=float, default=1.0, help="seconds between two words of a stream")
    parser.add_argument("--model", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.model:
        await _serve_model(arguments.model)
        return
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        model = f"http://127.0.0.1:{port}"
        process = Process("llm", [sys.executable, "-m", "benchmarks.proxy", "--model", str(port)], Path(folder), child_environment())
        try:
            await process.wait_for_output("(listens)")
            async with running(Path(folder) / "stack", local=True, settings={"PROXY_UPSTREAMS": f"main={model}/v1"}) as stack:
                await _fill(stack)
                await measure_latency(stack, model, arguments.requests)
                await measure_streams(stack, arguments.streams, arguments.words, arguments.pause)
        finally:
            process.end()


async def _fill(stack: Stack) -> None:
    memories = [{"id": f"m{number}", "text": f"Person {number} is allergic to peanuts.", "user_id": "ada"} for number in range(_QUESTIONS)]
    api: Connection = await connect(stack.apis[0])
    await api.expect(_call("/v1/long-term-memory/?wait=20", {"memories": memories}))


if __name__ == "__main__":
    uvloop.run(main())
