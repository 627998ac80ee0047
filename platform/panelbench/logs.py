"""Where log lines go: readable on a terminal, JSON elsewhere."""

import logging
from typing import Any

import structlog

_SHARED = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


def _is_news(record: logging.LogRecord) -> bool:
    """Not a 503 of /healthz: whoever asked has that answer, and asks every few seconds."""
    path = getattr(getattr(record, "request", None), "path", "")
    return path != "/healthz" or getattr(record, "status_code", None) != 503


def configuration(format_name: str, level: str) -> dict[str, Any]:
    """The logging dictionary for Django and Celery."""
    renderer = structlog.dev.ConsoleRenderer() if format_name == "console" else structlog.processors.JSONRenderer()
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "lines": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": _SHARED,
                "processors": [
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    structlog.processors.format_exc_info,
                    renderer,
                ],
            }
        },
        "filters": {"news": {"()": lambda: _is_news}},
        "handlers": {
            "stderr": {"class": "logging.StreamHandler", "formatter": "lines", "filters": ["news"]},
        },
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            "django.server": {"level": "WARNING"},
            "httpx2": {"level": "WARNING"},
            "waitress.queue": {"level": "ERROR"},
        },
    }
