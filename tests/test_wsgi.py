"""What a web process has done before its first request."""

from __future__ import annotations

import subprocess
import sys

COUNTED = """
import sys
import panelbench.wsgi
from django.conf import settings
from django.urls import reverse
from django.utils import translation

calls = 0

def count(_frame, event, _argument):
    global calls
    calls += event == "call"

for language, _name in settings.LANGUAGES:
    with translation.override(language):
        sys.setprofile(count)
        reverse("home")
        sys.setprofile(None)
print(calls)
"""


def test_no_request_has_to_build_the_table_of_addresses() -> None:
    """Python calls of the first `reverse` in every language: building the table takes 50,000 and more."""
    done = subprocess.run([sys.executable, "-c", COUNTED], check=True, capture_output=True, text=True)
    assert int(done.stdout.split()[-1]) < 1000
