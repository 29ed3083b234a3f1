"""Test that the example chat graph remembers across processes."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tests.integrations.conftest import ROOT, ModelServer
from tests.integrations.test_pages import run


@pytest.mark.parametrize("with_model", [False, True])
def test_chat_example_remembers_facts_in_another_process(server_url: str, model: ModelServer, *, with_model: bool) -> None:
    user = f"u-{uuid4()}"
    command = [str(ROOT / "examples" / "langgraph_chat.py"), "--base-url", server_url, "--user", user]
    environment = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "sk-test-0000"} if with_model else {}
    model.script += ["Nice!", "- Ada keeps bees in Oslo", "Hi!", "NONE"]
    run(*command, said="I am Ada and keep bees in Oslo.\nhello\n", **environment)
    model.script[:] = ["You keep bees.", "NONE"]
    printed = run(*command, said="Which animals do I keep? Bees?\n", **environment)
    if with_model:
        assert printed.strip() == "You keep bees."
        assert "Ada keeps bees in Oslo" in str(model.asked[-2]["messages"][0])
        assert "NONE" not in str(model.asked[-2]["messages"][0])
    else:
        assert "keep bees in Oslo" in printed
    stranger = run(*command[:-1], f"{user}-2", said="Which animals do I keep? Bees?\n")
    assert "Oslo" not in stranger
