"""The fixtures of the floors below the API."""

from tests.support.rig_fixtures import *  # noqa: F403
