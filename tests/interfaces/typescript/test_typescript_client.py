"""The TypeScript client: its own tests against a real server, its types, and the package that it becomes."""

from __future__ import annotations

import pytest

from tests.interfaces.typescript.conftest import PACKAGE, node

pytestmark = pytest.mark.integrations
FILES = sorted((PACKAGE / "test").glob("*.test.ts"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name.removesuffix(".test.ts"))
async def test_its_own_tests_pass(file: str, server_url: str) -> None:
    printed = await node("--test", "--test-reporter=spec", "--test-timeout=100000", file, AGENT_MEMORY_URL=server_url)
    assert "pass 0" not in printed
