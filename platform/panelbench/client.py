"""Deprecated name of the Python client, which is a distribution of its own: install `panelbench-client`."""

from panelbench_client import *  # noqa: F403
