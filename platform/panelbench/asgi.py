"""The same site for an ASGI server. WSGI is the default: it served twice the requests per second (docs/operations.md)."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "panelbench.settings")

application = get_asgi_application()
