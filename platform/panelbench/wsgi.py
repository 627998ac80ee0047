"""The web server's entry: `granian --interface wsgi panelbench.wsgi:application`."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "panelbench.settings")

application = get_wsgi_application()
