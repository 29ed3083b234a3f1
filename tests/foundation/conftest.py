from tests.support.rig_fixtures import *  # noqa: F403
