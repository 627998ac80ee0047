"""The old name of the Python client, deprecated. It is a separate distribution now: install `panelbench-client`."""

from panelbench_client import *  # noqa: F403
