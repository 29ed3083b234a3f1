"""Test that settings come from overrides, the environment and `.env`, in this order.

An invalid value causes a one-line error.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agent_memory.foundation.core.errors import StartupError
from agent_memory.foundation.core.settings import ServerSettings, Settings, load_settings, variables


def test_defaults_need_no_configuration() -> None:
    settings = load_settings()
    assert (settings.server.host, settings.server.port) == ("127.0.0.1", 8000)
    assert settings.redis.url is None
    assert not settings.models.use_openai_chat
    assert not settings.models.use_openai_embeddings


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("PORT", "http", "setting PORT: must be a whole number, such as 8000"),
        ("AUTH_MODE", "open", "setting AUTH_MODE: must be 'disabled', 'token', 'oauth2' or 'both'"),
        ("AUTH_ADMIN_TOKENS", "x", "there is no setting AUTH_ADMIN_TOKENS: `agent-memory doctor` prints all"),
    ],
)
def test_invalid_setting_is_reported_with_what_it_must_be(variable: str, value: str, message: str) -> None:
    with pytest.raises(StartupError) as caught:
        load_settings(**{variable: value})
    assert caught.value.message == message


def test_environment_variables_are_case_insensitive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORT", "8100")
    monkeypatch.setenv("log_level", "DEBUG")
    settings = load_settings()
    assert (settings.server.port, settings.server.log_level) == (8100, "DEBUG")


def test_overrides_win_and_none_means_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORT", "8100")
    monkeypatch.setenv("HOST", "::1")
    settings = load_settings(PORT="8200", HOST=None)
    assert (settings.server.port, settings.server.host) == (8200, "::1")


def test_a_blank_variable_counts_as_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("REDIS_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL", "EMBEDDING_DIMENSIONS", "PORT"):
        monkeypatch.setenv(name, "")
    settings = load_settings()
    assert settings.redis.url is None
    assert settings.models.openai_api_key is None
    assert not settings.models.use_openai_chat
    assert settings.server.port == 8000


def test_first_of_several_variable_names_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_BASE", "http://second")
    assert load_settings().models.openai_base_url == "http://second"
    monkeypatch.setenv("OPENAI_BASE_URL", "http://first")
    assert load_settings().models.openai_base_url == "http://first"


def test_environment_overrides_the_dotenv_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(ServerSettings.model_config, "env_file", ".env")
    (tmp_path / ".env").write_text("PORT=8300\nHOST=::1\nSOMEBODY_ELSES=1\n")
    monkeypatch.setenv("HOST", "127.0.0.2")
    settings = load_settings()
    assert (settings.server.port, settings.server.host) == (8300, "127.0.0.2")


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("PORT", "eighty"),
        ("PORT", "70000"),
        ("LOG_LEVEL", "LOUD"),
        ("KEY_PREFIX", "{bad}"),
        ("KEY_PREFIX", "x" * 33),
        ("SUMMARIZATION_THRESHOLD", "1.5"),
        ("MODEL_PROVIDER", "magic"),
        ("MODEL_CONTEXT_WINDOWS", "not json"),
        ("MODEL_CONTEXT_WINDOWS", '{"m": "many"}'),
        ("AUTH_MODE", "oauth9"),
        ("EMBEDDING_DIMENSIONS", "0"),
        ("WORKER_CONCURRENCY", "0"),
    ],
)
def test_bad_value_is_reported_in_one_line_that_names_the_variable(variable: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(StartupError) as raised:
        load_settings()
    assert variable in raised.value.message
    assert "\n" not in raised.value.message


def test_bad_secret_is_not_repeated_in_the_error() -> None:
    with pytest.raises(StartupError) as raised:
        load_settings(PORT="hunter2-hunter2")
    assert "hunter2" not in raised.value.message


def test_an_unknown_override_is_refused() -> None:
    with pytest.raises(StartupError, match="there is no setting NOPE"):
        load_settings(NOPE=1)


def test_settings_are_frozen_and_hide_secrets_in_repr() -> None:
    settings = load_settings(REDIS_URL="redis://:sesame@r:6379", OPENAI_API_KEY="sk-open-sesame")
    assert "sesame" not in repr(settings) + str(settings)
    with pytest.raises(ValueError, match="frozen"):
        settings.server.port = 1  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("given", "chat", "embeddings"),
    [
        ({}, False, False),
        ({"OPENAI_API_KEY": "k"}, True, True),
        ({"OPENAI_BASE_URL": "http://m"}, True, True),
        ({"OPENAI_API_KEY": "k", "EMBEDDING_PROVIDER": "local"}, True, False),
        ({"OPENAI_API_KEY": "k", "MODEL_PROVIDER": "local"}, False, False),
        ({"EMBEDDING_BASE_URL": "http://e"}, False, True),
        ({"MODEL_PROVIDER": "openai"}, True, True),
    ],
)
def test_models_follow_the_provider_settings(given: dict[str, str], chat: bool, embeddings: bool) -> None:
    models = load_settings(**given).models
    assert (models.use_openai_chat, models.use_openai_embeddings) == (chat, embeddings)


def test_every_variable_belongs_to_one_settings_group() -> None:
    found = variables()
    assert len(found) > 30
    assert all(name == name.upper() for name in found)
    groups = set(Settings.model_fields)
    assert {group for group, _ in found.values()} == groups


def test_settings_fixture_gives_every_test_its_own_prefix(make_settings: Callable[..., Settings], settings: Settings) -> None:
    assert settings.redis.key_prefix != "am"
    assert make_settings(PORT=1).server.port == 1
