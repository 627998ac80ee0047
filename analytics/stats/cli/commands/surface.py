"""``panelbench stats surface FILE``: surface metrics of dialogues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.stats.cli import options

if TYPE_CHECKING:
    import argparse

    import pandas as pd

    from analytics.stats.core.estimate import CellEstimate
    from analytics.stats.text.surface import Dialogue, Embed


ABSENT = {"*": "the file has no dialogue", "pairwise_cosine": "it needs --embeddings"}
SPEAKS_FOR: str | None = None
NO_SAMPLE = "texts are described here, nobody rates"


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of this subcommand alone."""
    texts = parser.add_argument_group("texts")
    texts.add_argument("--text", metavar="NAME", help="the column of the text (default: text, or turns)")
    texts.add_argument(
        "--lemmas", choices=("simplemma", "estnltk", "stanza", "none"), default="simplemma", help="the lemmatiser"
    )
    texts.add_argument("--window", type=options.count, default=100, metavar="N", help="words in a window of MATTR")
    texts.add_argument("--embeddings", metavar="URL", help="an OpenAI-compatible address, or 'local'")
    texts.add_argument("--embedding-model", default="intfloat/multilingual-e5-large-instruct", metavar="NAME")
    texts.add_argument("--key-variable", default="", metavar="NAME", help="environment variable that holds the key")
    texts.add_argument("--cache", default=".panelbench/embeddings", metavar="DIRECTORY", help="where vectors are kept")


def names() -> tuple[str, ...]:
    """What ``--statistic`` may ask for."""
    from analytics.stats.text.surface import STATISTICS

    return STATISTICS


def read(arguments: argparse.Namespace, frame: pd.DataFrame) -> list[Dialogue]:
    """The dialogues of FILE."""
    from analytics.stats.cli.reading import known_columns, renamed
    from analytics.stats.text.surface import dialogues

    own = {name: getattr(arguments, f"column_{name}") for name in ("item", "language", "generator")}
    given = {name: column for name, column in (own | {"text": arguments.text}).items() if column}
    frame = renamed(frame, given)
    if arguments.by is not None:
        arguments.by = known_columns(frame, arguments.by, given)
    return dialogues(frame)


def run(arguments: argparse.Namespace, texts: list[Dialogue]) -> list[CellEstimate]:
    """Every surface metric of every cell."""
    from analytics.stats.core.tables import Problem, TableError
    from analytics.stats.text.surface import BY, surface_report
    from analytics.stats.text.words import MissingEngineError

    by = arguments.by or tuple(column for column in BY if any(text.value(column) for text in texts))
    try:
        return surface_report(texts, by=by, engine=arguments.lemmas, window=arguments.window, embed=_embed(arguments))
    except (MissingEngineError, OSError, ValueError) as error:
        raise TableError([Problem(None, str(error))]) from error


def _embed(arguments: argparse.Namespace) -> Embed | None:
    from pathlib import Path

    from analytics.stats.text.surface import EmbeddingEndpoint, cached, local_embedding

    if not arguments.embeddings:
        return None
    model = arguments.embedding_model
    if arguments.embeddings == "local":
        return cached(local_embedding(model), model=model, directory=Path(arguments.cache))
    endpoint = EmbeddingEndpoint(arguments.embeddings, model, arguments.key_variable)
    return cached(endpoint, model=model, directory=Path(arguments.cache))
