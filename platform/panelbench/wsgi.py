"""The WSGI application, served by `panelbench web` (``panelbench.server``)."""

import os

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.urls import reverse
from django.utils import translation

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "panelbench.settings")

application = get_wsgi_application()

# Django builds the table behind `reverse` once for each language, 50,000 to 100,000 Python calls each: here, where the
# processes forked from this one share it, and not in the first request of every process.
for language, _name in settings.LANGUAGES:
    with translation.override(language):
        reverse("home")
