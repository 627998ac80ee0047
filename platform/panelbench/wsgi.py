"""The web server's entry: `panelbench web` serves it (``panelbench.server``)."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "panelbench.settings")

application = get_wsgi_application()
