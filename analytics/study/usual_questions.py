"""What pages ask of a campaign without a choice. They are above Study: registered when the app is loaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analytics.questions.question import Settings
    from annotation.models import Campaign

USUAL_QUESTIONS: list[Callable[[Campaign], list[Settings]]] = []
