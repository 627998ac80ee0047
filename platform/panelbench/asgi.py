"""The ASGI application. WSGI is the default, because it served twice as many requests per second."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "panelbench.settings")

application = get_asgi_application()
