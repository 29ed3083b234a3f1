"""Provide the fixtures below the API, and the API over recorded answers."""

from tests.support.http_fixtures import *  # noqa: F403
from tests.support.rig_fixtures import *  # noqa: F403
