"""Test that the archived server's variables still work or are reported with a replacement."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_memory.foundation.core.errors import StartupError
from agent_memory.foundation.core.settings import GROUPS, load_settings, renamed, variables
from agent_memory.foundation.core.settings.base import kind_of
from agent_memory.foundation.core.settings.renamed import RETIRED, unread
from tests.support.cli import ROOT

CONTRACT = json.loads((ROOT / "tests" / "compat" / "contract" / "contract.json").read_text())["env_settings"]


@pytest.mark.parametrize("name", CONTRACT)
def test_each_archived_setting_is_read_or_retired_with_a_reason(name: str) -> None:
    assert (name in variables()) + (name in RETIRED) == 1
    assert name not in RETIRED or len(RETIRED[name]) > 15


OWN_DEFAULTS = {
    "REDIS_URL": "without one, serve starts a Redis of its own",
    "GENERATION_MODEL": "the small model does the work at a fraction of the price",
    "FAST_MODEL": "without one, GENERATION_MODEL does its work",
    "MCP_HOST": "nobody is asked for credentials by default, so only this machine is let in",
    "DOCKET_NAME": "the archived server's queue holds tasks that mean nothing here",
    "INDEX_ALL_MESSAGES_IN_LONG_TERM_MEMORY": "messages are found without a language model",
    "REDISVL_VECTOR_DIMENSIONS": "the embedding model knows its own",
    "REDISVL_INDEXING_ALGORITHM": "exact neighbours are best with filters by user",
    "DISABLE_AUTH": "AUTH_MODE alone decides when this is not set",
    "QUERY_OPTIMIZATION_PROMPT_TEMPLATE": "the prompt that is built in is our own",
}
"""Variables whose default differs from the contract's, each with its reason; docs/compatibility.md lists visible differences."""


@pytest.mark.parametrize("name", [name for name in CONTRACT if name in variables()])
def test_default_equals_the_contracts_or_is_listed_as_own(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(name, raising=False)
    group, field = variables()[name]
    found = getattr(getattr(load_settings(), group), field)
    same = (list(found) if isinstance(found, tuple) else found) == CONTRACT[name]["default"]
    assert same != (name in OWN_DEFAULTS), found


def test_only_archived_settings_are_retired() -> None:
    assert set(RETIRED) <= set(CONTRACT)


def test_settings_named_in_retirement_reasons_exist() -> None:
    words = {word.strip("(),:;`.") for reason in RETIRED.values() for word in reason.split()}
    assert {word for word in words if "_" in word and word.isupper()} <= set(variables())


def test_archived_default_values_are_accepted() -> None:
    given = {name: one["default"] for name, one in CONTRACT.items() if name in variables() and one["default"] is not None}
    given = {name: value for name, value in given.items() if value != "<built-in prompt text>"}
    assert load_settings(**given)


def test_unread_variables_get_a_retirement_note_or_a_suggestion() -> None:
    found = {one.name: one for one in unread(["USE_DOCKET", "REDIS_URI", "PATH", "HOSTNAME", "PORT", "redis_url", "REDIS_MEMORY_X"])}
    assert set(found) == {"USE_DOCKET", "REDIS_URI", "REDIS_MEMORY_X"}
    assert "serve" in found["USE_DOCKET"].advice
    assert "did you mean REDIS_URL?" in found["REDIS_URI"].advice


def test_dotenv_file_gets_suggestions_for_less_similar_names() -> None:
    assert unread(["GENERATIVE_MODEL"]) == []
    assert "GENERATION_MODEL" in unread([], ["GENERATIVE_MODEL"])[0].advice


def test_variables_of_other_programs_are_marked_as_common() -> None:
    assert [one.common for one in unread(["AWS_ACCESS_KEY_ID", "SLOW_MODEL"])] == [True, False]


def test_unread_variables_are_found_in_environment_and_dotenv_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text("USE_DOCKET=true\nSLOW_MODEL=\nKEY_PREFIXES=a\n")
    monkeypatch.setenv("NER_MODEL", "x")
    monkeypatch.setenv("TOPIC_MODEL", "")
    names = {one.name for one in renamed.unread_variables(tmp_path / ".env")}
    assert {"USE_DOCKET", "NER_MODEL", "KEY_PREFIXES"} <= names
    assert not {"SLOW_MODEL", "TOPIC_MODEL"} & names


def test_oauth_claims_and_default_role_are_configurable() -> None:
    auth = load_settings(OAUTH2_CLAIMS={"user": "sub", "tenant": "org"}).auth
    assert auth.oauth2_claims == {"user": "sub", "tenant": "org"}
    assert load_settings().auth.default_role == "write"
    auth = load_settings(OAUTH2_ROLES={"*": "read", "boss": "admin"}).auth
    assert (auth.default_role, auth.roles) == ("read", {"boss": "admin"})
    with pytest.raises(StartupError, match="OAUTH2_CLAIMS"):
        load_settings(OAUTH2_CLAIMS={"usr": "sub"})


def test_operator_settings_are_described_and_at_most_sixty() -> None:
    fields = [field for model in GROUPS.values() for field in model.model_fields.values() if kind_of(field) == "setting"]
    assert len(fields) <= 60
    assert all(field.description for field in fields), "the page says what it means"
