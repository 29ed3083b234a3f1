from tests.support.http_fixtures import *  # noqa: F403
