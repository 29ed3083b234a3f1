"""Provide fixtures for tests below the API, and for the API with recorded responses."""

from tests.support.http_fixtures import *  # noqa: F403
from tests.support.rig_fixtures import *  # noqa: F403
