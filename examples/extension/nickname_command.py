"""The command `agent-memory nickname USER`.

Every `agent-memory` command imports this module, so keep its imports light.
"""

from typing import Annotated, Any

import typer


async def nickname(api: Any, user_id: Annotated[str, typer.Argument(metavar="USER", help="user to address")]) -> Any:
    """Print a user's nickname."""
    return await api.call("GET", "/v1/nickname", {"user_id": user_id})
