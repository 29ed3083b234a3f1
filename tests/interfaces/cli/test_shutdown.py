"""Test that a process with stubs shuts down in order and on time."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import threading
from pathlib import Path

from tests.support.cli import clean_environment
from tests.support.waiting import wait_for
from tests.support.warm import WarmProcess

# An API with one slow path, and a worker whose behavior is the first argument. Both report events on stdout, in order.
PROGRAM = """
import asyncio, contextlib, gc, sys, types
import agent_memory.interfaces.cli.run as run
import agent_memory_worker.main
from agent_memory.interfaces.cli import app

kind = sys.argv.pop(1)

def tell(*words):
    print(*words, flush=True)

async def api(scope, receive, send):
    if scope["type"] == "lifespan":
        while (await receive())["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        return await send({"type": "lifespan.shutdown.complete"})
    tell("request begins")
    tell("garbage is", "collected" if gc.isenabled() else "kept")
    await asyncio.sleep(0.6 if scope["path"] == "/slow" else 0)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})
    tell("request answered")

api.state = types.SimpleNamespace(live=types.SimpleNamespace(end=lambda: None))

async def worker(runtime, settings, stop):
    if kind == "fails":
        raise RuntimeError("a defect")
    tell("worker begins")
    await stop.wait()
    tell("worker told to stop")
    try:
        await asyncio.sleep(3600 if kind == "hangs" else 0.1)
    except asyncio.CancelledError:
        tell("worker cut off")
        raise
    tell("worker stopped")

class Runtime(types.SimpleNamespace):
    def __getitem__(self, service):
        return None

@contextlib.asynccontextmanager
async def runtime(settings, url, **_):
    tell("runtime opens")
    if kind == "starts slowly":
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            tell("start cut short")
            raise
    tell("garbage is", "collected" if gc.isenabled() else "kept")
    try:
        yield Runtime(models_description="none", redis_description="none", all=())
    finally:
        tell("runtime closes")

run.open_runtime, run.create_app, run._MARGIN_SECONDS = runtime, lambda *_: api, 0.2
run.sampling = lambda *_: contextlib.nullcontext()
agent_memory_worker.main.run_worker = worker
app.main()
"""


class Process:
    """Runs `agent-memory serve` with stubs."""

    def __init__(self, kind: str, cwd: Path, *options: str, **settings: str) -> None:
        arguments = ["serve", "--port", "0", "--redis-url", "redis://127.0.0.1:1", *options]
        outputs, (stdout, stderr) = zip(os.pipe(), os.pipe(), strict=True)
        around = clean_environment(**{"SHUTDOWN_DRAIN_SECONDS": "0", **settings})
        self.process = WarmProcess([kind, *arguments], cwd=cwd, environment=around, stdout=stdout, stderr=stderr, code=PROGRAM)
        os.close(stdout)
        os.close(stderr)
        self._stdout, self._stderr = (os.fdopen(one) for one in outputs)
        self.lines: list[str] = []
        self.errors = ""
        self._readers = [threading.Thread(target=self._read_lines), threading.Thread(target=self._read_errors)]
        for reader in self._readers:
            reader.start()

    def _read_lines(self) -> None:
        for line in self._stdout:
            self.lines.append(line.strip())

    def _read_errors(self) -> None:
        self.errors = self._stderr.read()

    def wait_for_line(self, start: str) -> str:
        wait_for(lambda: any(line.startswith(start) for line in self.lines) or self.process.poll() is not None, start)
        return next(line for line in self.lines if line.startswith(start))

    @property
    def port(self) -> int:
        found = re.search(r":(\d+)$", self.wait_for_line("agent-memory listens on").split("   ")[0])
        assert found
        return int(found[1])

    def get(self, path: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()

    def end(self) -> int:
        try:
            return self.process.wait(60)
        finally:
            self.process.kill()
            for reader in self._readers:
                reader.join()
            self._stdout.close()
            self._stderr.close()

    def order(self, *wanted: str) -> bool:
        return [line for line in self.lines if line in wanted] == list(wanted)


def test_shutdown_answers_requests_then_stops_worker_then_closes_runtime(tmp_path: Path) -> None:
    serve = Process("works", tmp_path)
    answers: list[tuple[int, bytes]] = []
    port = serve.port
    asking = threading.Thread(target=lambda: answers.append(serve.get("/slow")))
    asking.start()
    serve.wait_for_line("request begins")
    serve.process.send_signal(signal.SIGTERM)
    serve.process.send_signal(signal.SIGTERM)  # supervisors send the signal again
    assert serve.end() == 0
    asking.join()
    assert answers == [(200, b"ok")]
    assert serve.order("request begins", "request answered", "worker told to stop", "worker stopped", "runtime closes"), serve.lines
    assert f"http://127.0.0.1:{port}/docs" in "".join(serve.lines)
    # Garbage collection starts only once the server answers, not during the start.
    assert serve.order("runtime opens", "garbage is kept", "request begins", "garbage is collected", "runtime closes"), serve.lines


def test_ctrl_c_shuts_down_in_order(tmp_path: Path) -> None:
    serve = Process("works", tmp_path)
    assert serve.get("/")[0] == 200
    serve.process.send_signal(signal.SIGINT)
    assert serve.end() == 0
    assert serve.order("worker told to stop", "worker stopped", "runtime closes")
    assert "Traceback" not in serve.errors


def test_second_ctrl_c_quits_at_once(tmp_path: Path) -> None:
    serve = Process("hangs", tmp_path, "--grace", "600")
    serve.wait_for_line("Try:")
    serve.process.send_signal(signal.SIGINT)
    serve.wait_for_line("worker told to stop")
    serve.process.send_signal(signal.SIGINT)
    assert serve.end() == 130
    assert "runtime closes" not in serve.lines


def test_hanging_worker_is_cancelled_after_the_grace_time(tmp_path: Path) -> None:
    serve = Process("hangs", tmp_path, "--grace", "1")
    serve.wait_for_line("Try:")
    serve.process.send_signal(signal.SIGTERM)
    assert serve.end() == 0
    assert serve.order("worker told to stop", "worker cut off", "runtime closes")


def test_worker_failure_ends_the_process_with_code_1(tmp_path: Path) -> None:
    serve = Process("fails", tmp_path)
    assert serve.end() == 1
    assert "RuntimeError: a defect" in serve.errors
    assert serve.errors.splitlines()[-1] == "agent-memory: the worker ended unexpectedly; the process stops with it (see the log)"
    assert "runtime closes" in serve.lines


def test_sigterm_interrupts_a_slow_start(tmp_path: Path) -> None:
    serve = Process("starts slowly", tmp_path)
    serve.wait_for_line("runtime opens")
    serve.process.send_signal(signal.SIGTERM)
    assert serve.end() == 0
    assert serve.lines == ["runtime opens", "start cut short"]
    assert "Traceback" not in serve.errors


class Caller:
    """A client connection that stays open between requests."""

    def __init__(self, port: int) -> None:
        self.connection = socket.create_connection(("127.0.0.1", port), timeout=30)

    def send(self, text: bytes) -> None:
        self.connection.sendall(text)

    def answer(self) -> tuple[int, bool]:
        """Return the response status and whether the server will close the connection."""
        got = http.client.HTTPResponse(self.connection)
        got.begin()
        got.read()
        return got.status, got.getheader("connection") == "close"

    def get(self) -> tuple[int, bool]:
        self.send(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        return self.answer()

    def ended(self) -> bool:
        """Wait until the server closes the connection. Return False after a reset."""
        try:
            return self.connection.recv(1) == b""
        except ConnectionResetError:
            return False
        finally:
            self.connection.close()


def refuses(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except ConnectionRefusedError:
        return True
    return False


def test_after_sigterm_each_connection_gets_one_more_answer_then_closes(tmp_path: Path) -> None:
    serve = Process("works", tmp_path, SHUTDOWN_DRAIN_SECONDS="5")
    known, silent = Caller(serve.port), Caller(serve.port)
    assert known.get() == (200, False)
    assert silent.get() == (200, False)
    serve.process.send_signal(signal.SIGTERM)

    def told() -> bool:
        return Caller(serve.port).get() == (200, True)

    wait_for(told, "the last answers")
    assert known.get() == (200, True)
    assert known.ended()
    assert silent.answer() == (503, True), "what it would have asked at this moment has an answer"
    assert silent.ended(), "closed at the end, not reset"
    assert serve.end() == 0
    assert refuses(serve.port)


def test_half_sent_request_is_answered_after_the_drain_time(tmp_path: Path) -> None:
    serve = Process("works", tmp_path, SHUTDOWN_DRAIN_SECONDS="0")
    known, late = Caller(serve.port), Caller(serve.port)
    assert known.get() == (200, False)
    known.send(b"GET / HTTP/1.1\r\nho")
    late.send(b"GET / HTTP/1.1\r\nho")
    assert Caller(serve.port).get() == (200, False)  # so that the server reads both
    serve.process.send_signal(signal.SIGTERM)
    wait_for(lambda: refuses(serve.port), "the end of listening")
    for caller in (known, late):
        caller.send(b"st: x\r\n\r\n")
        assert caller.answer() == (200, True)
        assert caller.ended()
    assert serve.end() == 0


def test_request_sent_while_the_server_closes_gets_503_instead_of_reset(tmp_path: Path) -> None:
    serve = Process("works", tmp_path, SHUTDOWN_DRAIN_SECONDS="0")
    known, fresh = Caller(serve.port), Caller(serve.port)
    assert known.get() == (200, False)
    serve.process.send_signal(signal.SIGTERM)
    for caller in (known, fresh):
        caller.connection.recv(1, socket.MSG_PEEK)  # The server has closed it; this request was sent before the client noticed.
        caller.send(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        assert caller.answer() == (503, True)
        assert caller.ended()
    assert serve.end() == 0


def test_ctrl_c_skips_the_drain_wait(tmp_path: Path) -> None:
    serve = Process("works", tmp_path, SHUTDOWN_DRAIN_SECONDS="600")
    assert serve.get("/")[0] == 200
    serve.process.send_signal(signal.SIGINT)
    assert serve.end() == 0
