"""Measure the language model proxy: `python -m benchmarks.proxy`.

The command first compares calls sent directly to a model server with calls through the proxy, with
and without memory. It also measures recall alone. It then runs many concurrent streams that end at
the same time. The model server writes the time into each event, so that the command can print the
delays. It also checks that every byte arrives and that everything is stored exactly once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Set
from hashlib import sha256
from pathlib import Path
from typing import ClassVar, cast
from urllib.parse import urlsplit

import httptools
import uvloop

from benchmarks.measurement.meter import cpu_seconds, percentile, rss_bytes
from benchmarks.setup.http import Connection, connect, request
from benchmarks.setup.stack import Process, Stack, child_environment, free_port, running

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n"
_SENT = re.compile(rb'"content": "([0-9.]+) "')
_DIGEST = b'data: {"digest": "'  # followed by a digest of all previous events
_FAILED = b": x-memory-stored: failed\n"
_QUESTIONS = 40
_USERS = 200


class _Model(asyncio.Protocol):
    """A model server that sends the current time as each word.

    No stream ends until all streams have started. `stream` in a request is the number of streams.
    """

    begun: ClassVar[list[_Model]] = []
    all_begun: ClassVar = asyncio.Event()

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
        self._task = asyncio.ensure_future(self._answer(body.get("words", 1), body.get("pause", 0.0), body.get("stream", 0)))

    async def _answer(self, words: int, pause: float, streams: int) -> None:
        write = self._transport.write  # type: ignore[attr-defined]
        if not streams:
            answer = json.dumps({"choices": [{"index": 0, "message": {"role": "assistant", "content": "Understood."}}]}).encode()
            write(_HEAD % b"application/json" + b"%x\r\n%s\r\n0\r\n\r\n" % (len(answer), answer))
            return
        write(_HEAD % b"text/event-stream")
        digest = sha256()
        self.begun.append(self)
        if len(self.begun) == streams:
            self.all_begun.set()
        for number in range(words):
            await asyncio.sleep(pause)
            if number == words - 1:
                await self.all_begun.wait()
            event = {"choices": [{"index": 0, "delta": {"content": f"{time.monotonic():.6f} "}}]}
            line = f"data: {json.dumps(event)}\n\n".encode()
            digest.update(line)
            write(b"%x\r\n%s\r\n" % (len(line), line))
        line = _DIGEST + _end_of(digest.hexdigest())
        write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(line), line))


def _end_of(digest: str) -> bytes:
    return f'{digest}"}}\n\ndata: [DONE]\n\n'.encode()


async def _serve_model(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(_Model, "127.0.0.1", port, backlog=2048)
    print("listens", flush=True)
    await server.serve_forever()


def _call(path: str, body: object, **headers: str) -> bytes:
    """Build a request with additional headers."""
    more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    head, _, rest = request("POST", path, json.dumps(body).encode()).partition(b"\r\n")
    return head + b"\r\n" + more.encode() + rest


async def measure_latency(stack: Stack, model: str, requests: int) -> None:
    """Print the latency and CPU time for each kind of call, using the same questions."""
    api, direct = await connect(stack.apis[0]), await connect(model)
    questions = [{"role": "user", "content": f"Which nuts is person {number} allergic to?"} for number in range(_QUESTIONS)]

    def proxied(mode: str) -> Callable[[int], Awaitable[bytes]]:
        def call(number: int) -> Awaitable[bytes]:
            messages = [questions[number % _QUESTIONS]]
            headers = {"X_Memory_User": "ada", "X_Memory_Session": f"{mode}-{number}", "X_Memory": mode, "Authorization": "Bearer k"}
            return api.expect(_call("/proxy/v1/chat/completions", {"model": "m", "messages": messages}, **headers))

        return call

    def recall(number: int) -> Awaitable[bytes]:
        body = {"query": questions[number % _QUESTIONS]["content"], "user_id": "ada", "long_term_search": True, "format": "anthropic"}
        return api.expect(_call("/v1/memory/prompt", body))

    def plain(number: int) -> Awaitable[bytes]:
        return direct.expect(_call("/v1/chat/completions", {"model": "m", "messages": [questions[number % _QUESTIONS]]}))

    kinds = {
        "direct": plain,
        "recall alone": recall,
        "proxy, off": proxied("off"),
        "proxy, read": proxied("read"),
        "proxy, on": proxied("on"),
    }
    seconds: dict[str, list[float]] = {name: [] for name in kinds}
    cpu = dict.fromkeys(kinds, 0.0)
    pid = stack.pids["api"][0]
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
        print(f"added to recall and the model, {mode}: p50 {p50s[f'proxy, {mode}'] - p50s['recall alone'] - p50s['direct']:.2f} ms")


class _Talk(asyncio.Protocol):
    """A caller's stream. `ended` is True once the complete answer has arrived."""

    def __init__(self, delays: list[float]) -> None:
        self._delays = delays
        self._parser = httptools.HttpResponseParser(self)
        self._place = 0
        self.headers: dict[bytes, bytes] = {}
        self.body = bytearray()
        self.status = 0
        self.ended = False
        self.closed = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)
        now = time.monotonic()
        for sent in _SENT.finditer(self.body, self._place):
            self._delays.append(now - float(sent[1]))
            self._place = sent.end()

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        self.ended = True
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.closed.done():
            self.closed.set_result(None)

    def is_whole(self, words: int) -> bool:
        """True if every byte of the answer has arrived."""
        events, _, end = bytes(self.body).rpartition(_DIGEST)
        return len(_SENT.findall(events)) == words and end == _end_of(sha256(events).hexdigest())

    def text(self) -> str:
        return "".join(f"{word.decode()} " for word in _SENT.findall(self.body))


async def measure_streams(stack: Stack, streams: int, words: int, pause: float, *, per_second: float, history: int, kill: bool) -> None:
    """Print the delays of events in streams, and whether everything is stored exactly once.

    With `kill`, kill the API when half of the streams have ended, and check the sessions on another
    API.
    """
    pid = stack.pids["api"][0]
    delays: list[float] = []
    talks: dict[int, _Talk] = {}
    refusals = Counter[str]()
    host, port = urlsplit(stack.apis[0]).netloc.split(":")
    loop = asyncio.get_running_loop()
    most = peak = 0

    async def talk(number: int) -> None:
        await asyncio.sleep(number / per_second)
        earlier = [{"role": "user", "content": "x" * history}, {"role": "assistant", "content": "Yes."}] if history else []
        messages = [*earlier, {"role": "user", "content": _question(number)}]
        body = {"model": "m", "stream": streams, "words": words, "pause": pause, "messages": messages}
        call = _call("/proxy/v1/chat/completions", body, X_Memory_User=_user(number), X_Memory_Session=f"s{number}")
        while True:
            try:
                _, made = await loop.create_connection(lambda: _Talk(delays), host, int(port))
            except OSError as error:
                refusals[f"no connection: {type(error).__name__}"] += 1
                break
            made.transport.write(call)
            talks[number] = made
            await made.closed
            if made.status == 200 or killed.done():
                break
            # Retry like the model providers' SDKs.
            refusals[f"{made.status} {made.headers.get(b'retry-after', b'').decode()} {made.body[:120].decode()}"] += 1
            await asyncio.sleep(1)

    async def watch() -> None:
        nonlocal most, peak
        while True:
            under_way = sum(talk.status == 200 and not talk.closed.done() for talk in talks.values())
            most, peak = max(most, under_way), max(peak, rss_bytes(pid))
            if kill and not killed.done() and sum(talk.ended for talk in talks.values()) >= streams // 2:
                os.kill(pid, signal.SIGKILL)
                killed.set_result(None)
                return
            await asyncio.sleep(0.1)

    killed = loop.create_future()
    before, used, begun = rss_bytes(pid), cpu_seconds(pid), time.monotonic()
    watcher = asyncio.create_task(watch())
    await asyncio.gather(*(talk(number) for number in range(streams)))
    watcher.cancel()
    took = time.monotonic() - begun
    p50, p95, p99 = (1000 * percentile(delays, share) for share in (0.5, 0.95, 0.99))
    print(f"refused and retried: {dict(refusals)}")
    whole = {number for number, talk in talks.items() if talk.is_whole(words)}
    print(f"streams: {streams} in {took:.0f} s, at most {most} at a time, complete {len(whole)}; {len(delays) / took:.0f} events/s")
    print(f"delay of an event: p50 {p50:.1f} ms, p95 {p95:.1f} ms, p99 {p99:.1f} ms; load {os.getloadavg()[0]:.1f}")
    print(_warnings(stack.folder / "api-0.log"))
    print(f"memory of the API: before {before / 2**20:.0f} MiB, at most {peak / 2**20:.0f} MiB")
    if not kill:
        print(f"API: CPU {100 * (cpu_seconds(pid) - used) / took:.0f} % of a core, at the end {rss_bytes(pid) / 2**20:.0f} MiB")
    await _check_sessions(stack.apis[-1], talks, whole)


def _warnings(log: Path) -> str:
    """Return the five most frequent log messages, with numbers masked."""
    lines = Counter(re.sub(r"[0-9a-f]*\d[0-9a-f.:+-]*", "#", line) for line in log.read_text("utf-8", "replace").splitlines())
    return "log: " + "\n".join(f"{count} × {line[:300]}" for line, count in lines.most_common(5))


async def _check_sessions(url: str, talks: Mapping[int, _Talk], whole: Set[int]) -> None:
    """Print how many answers are stored once, lost although reported as stored, or doubled."""
    api, stored, lost, twice = await connect(url), 0, 0, 0
    for number, talk in talks.items():
        status, answer = await api.send(request("GET", f"/v1/working-memory/s{number}?user_id={_user(number)}"))
        contents = [message["content"] for message in json.loads(answer)["messages"]] if status == 200 else []
        stored += contents == [_question(number), talk.text()]
        twice += len(contents) > 2
        failure_reported = _FAILED in talk.body or talk.headers.get(b"x-memory-stored") != b"yes"
        lost += not failure_reported and (contents[:1] != [_question(number)] or (number in whole and contents[1:] != [talk.text()]))
    print(f"stored completely, once: {stored}; acknowledged and lost: {lost}; stored twice: {twice}")


def _question(number: int) -> str:
    return f"Person {number % _QUESTIONS} talks about stream {number}."


def _user(number: int) -> str:
    return f"user{number % _USERS}"


async def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.proxy", description=__doc__)
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--per-second", type=float, default=25, help="new streams a second")
    parser.add_argument("--history", type=int, default=0, help="bytes of the conversation before each stream")
    parser.add_argument("--kill", action="store_true", help="kill the API when half of the streams have ended")
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
            async with running(
                Path(folder) / "stack", local=True, apis=1 + arguments.kill, settings={"PROXY_UPSTREAMS": f"main={model}/v1"}
            ) as stack:
                await _fill(stack)
                if arguments.requests:
                    await measure_latency(stack, model, arguments.requests)
                await measure_streams(
                    stack,
                    arguments.streams,
                    arguments.words,
                    arguments.pause,
                    per_second=arguments.per_second,
                    history=arguments.history,
                    kill=arguments.kill,
                )
        finally:
            process.end()


async def _fill(stack: Stack) -> None:
    memories = [{"id": f"m{number}", "text": f"Person {number} is allergic to peanuts.", "user_id": "ada"} for number in range(_QUESTIONS)]
    api: Connection = await connect(stack.apis[0])
    await api.expect(_call("/v1/long-term-memory/?wait=20", {"memories": memories}))


if __name__ == "__main__":
    uvloop.run(main())
