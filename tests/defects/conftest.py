"""The fixtures of the floors that defects are shown on."""

from tests.api.conftest import *  # noqa: F403
from tests.support.rig_fixtures import *  # noqa: F403
