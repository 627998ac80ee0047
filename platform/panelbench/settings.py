"""The settings, from environment variables (docs/operations.md lists them); an invalid value stops the start."""

import os
import sys
from importlib.metadata import version
from pathlib import Path

import environ
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from panelbench import environment
from panelbench.environment import Environment

env = Environment()
os.umask(0o077)  # database, uploads, queue and exports are for the user that this runs as, in every process

PACKAGE_DIR = Path(__file__).resolve().parent
CHECKOUT_DIR = PACKAGE_DIR.parent.parent
# In a wheel templates, static and locale files lie inside the package; in a checkout at its top.
RESOURCE_DIR = PACKAGE_DIR if (PACKAGE_DIR / "templates").is_dir() else CHECKOUT_DIR
VERSION = version("panelbench")

DATA_DIR = Path(env.text("PANELBENCH_DATA_DIR", ".panelbench")).expanduser().resolve()
DEBUG = env.switch("DEBUG", default=False)
DATABASE_URL = env.address("DATABASE_URL", schemes=("postgres", "postgresql", "sqlite"))
REDIS_URL = env.address("REDIS_URL", schemes=("redis", "rediss", "unix"))
EMBEDDED = environment.is_embedded(DATABASE_URL)
SECRET_KEY = environment.secret_key(env.text("SECRET_KEY"), debug=DEBUG, embedded=EMBEDDED, data_dir=DATA_DIR)
ALLOWED_HOSTS = env.hosts("ALLOWED_HOSTS", default=("localhost", "127.0.0.1", "[::1]"), debug=DEBUG)
CSRF_TRUSTED_ORIGINS = env.origins("CSRF_TRUSTED_ORIGINS")
SITE_ADDRESS = env.site("SITE_ADDRESS")  # for links in mails that no request leads to

INSTALLED_APPS = [
    "panelbench.apps.PanelbenchConfig",
    "analytics",
    "judging",
    "annotation",
    "accounts",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.humanize",
    "django.contrib.staticfiles",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.usersessions",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "django_htmx",
    "csp",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
]

MIDDLEWARE = [
    "accounts.middleware.ClientAddressMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "accounts.outages.OutageMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "accounts.middleware.SessionLimitsMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "accounts.middleware.PrivateAnswersMiddleware",
    "accounts.middleware.InterfaceLanguageMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "accounts.middleware.ProjectRulesMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]

ROOT_URLCONF = "panelbench.urls"
WSGI_APPLICATION = "panelbench.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [RESOURCE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "panelbench.pages.shell",
            ]
        },
    }
]

# --- database -------------------------------------------------------------------------------------------------------
if DATABASE_URL:
    DATABASES = {"default": environ.Env.db_url_config(DATABASE_URL)}
else:
    DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": str(DATA_DIR / "panelbench.sqlite3")}}
_database = DATABASES["default"]
if _database["ENGINE"] == "django.db.backends.sqlite3":
    # IMMEDIATE takes the write lock when a transaction starts, so that writers queue instead of failing midway.
    _database["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-32000; "
        "PRAGMA mmap_size=134217728; PRAGMA temp_store=MEMORY;",
    }
    _database["CONN_MAX_AGE"] = None
elif _database["ENGINE"] == "django.db.backends.postgresql":
    _database.setdefault("OPTIONS", {})["pool"] = {
        "min_size": env.number("DATABASE_POOL_MIN", default=1, least=0, most=1000),
        "max_size": env.number("DATABASE_POOL_MAX", default=8, least=2, most=1000),
        "timeout": 20,
        "reconnect_timeout": 3,  # then the next request tries: a pool that goes on by itself waits up to 64 s
    }
    _database["ENGINE"] = "accounts.postgresql"  # whose web requests do not wait for ever
    _database["OPTIONS"].setdefault("connect_timeout", 5)
    if _database["OPTIONS"]["pool"]["min_size"] > _database["OPTIONS"]["pool"]["max_size"]:
        raise ImproperlyConfigured("DATABASE_POOL_MIN is more than DATABASE_POOL_MAX.")
    _database["CONN_HEALTH_CHECKS"] = True
else:
    raise ImproperlyConfigured("DATABASE_URL must start with postgres:// or sqlite:///")
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# The default cache holds what must hold: the counts of throttles, allauth's too. What pages keep goes into another,
# apart for each release: a release can't read what another one pickled.
if REDIS_URL:
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    _redis = {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
        # A Redis that is away or hangs keeps no request waiting; a kept connection that broke is opened once more.
        "OPTIONS": {"socket_connect_timeout": 1, "socket_timeout": 2, "retry": Retry(NoBackoff(), 1)},
    }
    CACHES = {
        "default": {**_redis, "KEY_PREFIX": "counts"},
        "content": {**_redis, "KEY_PREFIX": "content", "VERSION": VERSION},
    }
else:
    CACHES = {
        "default": {"BACKEND": "panelbench.counters.FileCounters", "LOCATION": str(DATA_DIR / "counts")},
        "content": {
            "BACKEND": "django.core.cache.backends.filebased.FileBasedCache",
            "LOCATION": str(DATA_DIR / "cache"),
            "VERSION": VERSION,
        },
    }

# Memory of each web process for rendered pages of figures (analytics/page_cache.py); 0 keeps none.
PAGE_CACHE_MB = env.number("PAGE_CACHE_MB", default=32, least=0, most=65_536)

# --- files ----------------------------------------------------------------------------------------------------------
STATIC_URL = "static/"
STATICFILES_DIRS = [RESOURCE_DIR / "static"]
STATIC_ROOT = Path(env.text("STATIC_ROOT", str(DATA_DIR / "static")))
MEDIA_ROOT = DATA_DIR / "uploads"
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "panelbench.assets.AssetStorage", "OPTIONS": {"file_permissions_mode": 0o644}},
}
FILE_UPLOAD_PERMISSIONS = 0o600
UPLOAD_LIMIT = env.number("UPLOAD_LIMIT_MB", default=2048) * 2**20  # of all files of one import together
DATA_UPLOAD_MAX_NUMBER_FIELDS = 4500  # the table of an import's columns has two fields for each
# What one file of an import may hold (annotation/readers/bounds.py); readers count while they read.
IMPORT_BOUNDS = {
    "columns": env.number("IMPORT_MOST_COLUMNS", default=2_000, most=10**12),
    "cells": env.number("IMPORT_MOST_CELLS", default=200_000_000, most=10**12),
    "cell_mb": env.number("IMPORT_LONGEST_CELL_MB", default=16, most=10**12),
    "unpacked_mb": env.number("IMPORT_UNPACKED_MB", default=2_048, most=10**12),
}

DEMO = env.switch("PANELBENCH_DEMO", default=False)  # the sign-in page then offers the demo's people

# --- people ---------------------------------------------------------------------------------------------------------
AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "accounts.passwords.KnownPasswordValidator"},
]
PASSWORD_RESET_TIMEOUT = 86_400  # seconds
LOGIN_REDIRECT_URL = "home"
LOGIN_URL = "account_login"
ACCOUNT_ADAPTER = "accounts.adapter.InvitationOnlyAdapter"
ACCOUNT_FORMS = {"signup": "accounts.forms.SignUpForm", "reset_password": "accounts.forms.ResetPasswordForm"}
ACCOUNT_EMAIL_NOTIFICATIONS = True
ACCOUNT_EMAIL_SUBJECT_PREFIX = "[Panelbench] "
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*"]
ACCOUNT_EMAIL_VERIFICATION = "optional"
ACCOUNT_EMAIL_UNKNOWN_ACCOUNTS = False
ACCOUNT_LOGOUT_ON_PASSWORD_CHANGE = True
ACCOUNT_SESSION_REMEMBER = None
SESSION_HOURS = env.number("SESSION_HOURS", default=168, most=8760)  # since signing in
SESSION_IDLE_HOURS = env.number("SESSION_IDLE_HOURS", default=12, most=8760)
if SESSION_IDLE_HOURS > SESSION_HOURS:
    raise ImproperlyConfigured("SESSION_IDLE_HOURS is more than SESSION_HOURS.")
SESSION_COOKIE_AGE = SESSION_HOURS * 3600
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_ALLOW_UNVERIFIED_EMAIL = True  # accounts come by invitation, and not every instance can send mail
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = DEBUG or EMBEDDED
SOCIALACCOUNT_ADAPTER = "accounts.adapter.InvitationOnlySocialAdapter"
SOCIALACCOUNT_PROVIDERS = {"openid_connect": {"APPS": env.json("PANELBENCH_OIDC", default=[])}}
EMAIL_CONFIG = env.email("EMAIL_URL", default="consolemail://" if EMBEDDED else "smtp://localhost:25")
vars().update(EMAIL_CONFIG)
DEFAULT_FROM_EMAIL = env.text("DEFAULT_FROM_EMAIL", "panelbench@localhost")

# --- language and time ----------------------------------------------------------------------------------------------
LANGUAGE_CODE = "en"
LANGUAGES = [
    *(("en", "English"), ("et", "Eesti"), ("fi", "Suomi"), ("hu", "Magyar"), ("ru", "Русский"), ("de", "Deutsch")),
    *(("fr", "Français"), ("es", "Español"), ("pt-br", "Português (Brasil)"), ("it", "Italiano"), ("cs", "Čeština")),
    *(("zh-hans", "简体中文"), ("ja", "日本語"), ("hi", "हिन्दी"), ("ar", "العربية")),
]
COMPLETE_LANGUAGES = ["en", "et", "es", "ar", "ja"]  # their catalogue says everything: leads' pages are in no other
REVIEWED_LANGUAGES = ["en"]  # those that a native speaker has read through; docs/translating.md
LOCALE_PATHS = [RESOURCE_DIR / "locale"]
USE_I18N = True
FORMAT_MODULE_PATH = "panelbench.dates"
USE_TZ = True
TIME_ZONE = "UTC"

# --- security -------------------------------------------------------------------------------------------------------
# Plain HTTP is for this machine only; for other cases the operator must set PANELBENCH_SECURE=off.
SECURE = env.switch("PANELBENCH_SECURE", default=not (DEBUG or EMBEDDED))
SECURE_SSL_REDIRECT = SECURE
# One answer to whom a request comes from (accounts.addresses), for sign-in, throttles and logs.
TRUSTED_PROXIES = env.proxies("TRUSTED_PROXIES", default=int(env.switch("BEHIND_PROXY", default=False)))
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if TRUSTED_PROXIES else None
SECURE_REDIRECT_EXEMPT = [r"^healthz$"]
SECURE_HSTS_SECONDS = 31_536_000 if SECURE else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = LANGUAGE_COOKIE_SECURE = SECURE
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
        "manifest-src": [SELF],
    }
}

# --- API ------------------------------------------------------------------------------------------------------------
REST_FRAMEWORK = {
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["accounts.api_requests.ShallowJSONParser"],
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "accounts.api_requests.TokenAuthentication",
        "accounts.api_requests.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": [
        "rest_framework.permissions.IsAuthenticated",
        "accounts.api_requests.HasScope",
        "accounts.api_requests.InProject",
    ],
    "DEFAULT_PAGINATION_CLASS": "accounts.api_requests.CursorPagination",
    "PAGE_SIZE": 100,
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_THROTTLE_CLASSES": [
        "accounts.api_requests.AnonymousThrottle",
        "accounts.api_requests.UserThrottle",
    ],
    "DEFAULT_THROTTLE_RATES": {
        "anon": env.rate("API_RATE_ANONYMOUS", default="60/min"),
        "user": env.rate("API_RATE_USER", default="1200/min"),
        "shared": env.rate("SHARED_RATE", default="120/min"),
    },
    "DEFAULT_SCHEMA_CLASS": "accounts.api_responses.AutoSchema",
    "EXCEPTION_HANDLER": "accounts.api_responses.api_error",
    "DEFAULT_VERSIONING_CLASS": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Panelbench",
    "DESCRIPTION": "Datasets, rubrics, panels, judges and statistics.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": r"/api/v1",
    "ENUM_NAME_OVERRIDES": {
        "CampaignState": "annotation.models.campaign.Campaign.State",
        "ImportKind": "annotation.models.content.Import.Kind",
        "ImportState": "annotation.models.content.Import.State",
        "RubricState": "annotation.models.content.RubricVersion.State",
        "JudgeRunState": "judging.runs.Phase",
        "CallState": "judging.models.Call.State",
        "GenerationPlanState": "judging.models.GenerationPlan.State",
        "CollectedPromptState": "annotation.models.collection.CollectedPrompt.State",
        "PromptCollectionState": "annotation.models.collection.PromptCollection.State",
        "RealisationState": "judging.models.Realisation.State",
        "WritingDutyKind": "annotation.models.writing.WritingDuty.Kind",
        "WritingTextState": "annotation.models.writing.WritingText.State",
        "DecisionEnum": [
            (use, use)
            for use in (
                *("stale", "insufficient", "rubric_problem", "judge_alone", "judge_with_correction"),
                *("ranking_only", "humans_only"),
            )
        ],
        "RealisationDecision": [("keep", "Keep"), ("set_aside", "Set aside")],
        "StepState": [(state, state) for state in ("failed", "not_run", "insufficient", "passed")],
        "MethodEnum": "judging.models.AlignmentSearch.Method",
        "CurationMethod": [(method, method) for method in ("balanced", "random")],
        "CurationFacet": [(facet, facet) for facet in ("issue", "score", "generator", "length")],
        "PromptOrder": [("rubric", "rubric"), ("reversed", "reversed")],
    },
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
}

# --- judges ---------------------------------------------------------------------------------------------------------
# The operator declares endpoints; researchers choose them by name, and keys stay in the environment.
PROVIDERS = environment.declared_providers(os.environ)
# Seconds that a stopping worker waits for replies to calls already sent, because they are paid for.
DRAIN_SECONDS = env.number("JUDGE_DRAIN_SECONDS", default=100, least=0)

# --- webhooks -------------------------------------------------------------------------------------------------------
# Private networks that leads may have events sent to, such as 10.0.0.0/8.
WEBHOOK_NETWORKS = env.networks("WEBHOOK_NETWORKS")

# --- queue ----------------------------------------------------------------------------------------------------------
CELERY_BROKER_URL = REDIS_URL or "filesystem://localhost"
CELERY_BROKER_DIR = DATA_DIR / "queue"

# --- logs -----------------------------------------------------------------------------------------------------------
LOG_FORMAT = env.choice(
    "LOG_FORMAT", default="console" if DEBUG or sys.stderr.isatty() else "json", among=("console", "json")
)
LOG_LEVEL = env.choice("LOG_LEVEL", default="INFO", among=("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"))
LOGGING = environment.logging_configuration(LOG_FORMAT, LOG_LEVEL)
