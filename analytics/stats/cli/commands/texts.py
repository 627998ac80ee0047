"""Subcommands of ``panelbench stats`` about texts: dialogues, rationales, parameters of generation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.stats.cli import options
from analytics.stats.cli.options import Subcommand

if TYPE_CHECKING:
    import argparse

    import pandas as pd

    from analytics.stats.core.estimates import CellEstimate
    from analytics.stats.core.tables import RatingsTable
    from analytics.stats.text.surface import Dialogue, Embed


# --- surface ---------------------------------------------------------------------------------------------------------


def _configure_surface(parser: argparse.ArgumentParser) -> None:
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


def _statistics_surface() -> tuple[str, ...]:
    """The names that ``--statistic`` accepts."""
    from analytics.stats.text.surface import STATISTICS

    return STATISTICS


def _read_surface(arguments: argparse.Namespace, frame: pd.DataFrame) -> list[Dialogue]:
    """The dialogues of FILE."""
    from analytics.stats.cli.files import known_columns, renamed
    from analytics.stats.text.surface import dialogues

    own = {name: getattr(arguments, f"column_{name}") for name in ("item", "language", "generator")}
    named = {name: column for name, column in (own | {"text": arguments.text}).items() if column}
    frame = renamed(frame, named)
    if arguments.by is not None:
        arguments.by = known_columns(frame, arguments.by, named)
    return dialogues(frame)


def _run_surface(arguments: argparse.Namespace, texts: list[Dialogue]) -> list[CellEstimate]:
    """Every surface metric of every cell."""
    from analytics.stats.core.tables import TableError, TableProblem
    from analytics.stats.text.surface import BY, surface_report
    from analytics.stats.text.words import MissingEngineError

    by = arguments.by or tuple(column for column in BY if any(text.value(column) for text in texts))
    try:
        return surface_report(texts, by=by, engine=arguments.lemmas, window=arguments.window, embed=_embed(arguments))
    except (MissingEngineError, OSError, ValueError) as error:
        raise TableError([TableProblem(None, str(error))]) from error


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


# --- rationales ------------------------------------------------------------------------------------------------------


def _configure_rationales(parser: argparse.ArgumentParser) -> None:
    """Options of this subcommand alone."""
    parser.epilog = (
        "Example: panelbench stats rationales ratings.csv --rationale comment. Rows without a judge are the "
        "annotators together; words are counted by the rules of the cell's language."
    )
    parser.add_argument(
        "--rationale", metavar="NAME", default="rationale", help="the column of the rationale (default: rationale)"
    )


def _statistics_rationales() -> tuple[str, ...]:
    """The names that ``--statistic`` accepts."""
    return ("rationale_words", "rationale_mattr", "rationale_in_language")


def _run_rationales(arguments: argparse.Namespace, table: RatingsTable) -> list[CellEstimate]:
    """Length, variety and language of rationales, annotators and each judge."""
    from analytics.stats.core.tables import TableError, TableProblem
    from analytics.stats.text.surface import rationale_report

    column = arguments.rationale
    if column not in table.frame:
        raise TableError([TableProblem(None, f"the column {column!r} is missing: say --rationale NAME")])
    chosen = table if arguments.raters is None else table.only(rater=arguments.raters)
    return rationale_report(chosen, column=column, by=arguments.by, resamples=arguments.bootstrap, seed=arguments.seed)


# --- recovery --------------------------------------------------------------------------------------------------------


def _configure_recovery(parser: argparse.ArgumentParser) -> None:
    """Options of this subcommand alone."""
    parser.epilog = (
        "Example: panelbench stats recovery dialogues.csv --parameters industry,channel. A row is a dialogue; a "
        "column of each name holds the parameter it was generated from, and one with the prefix judge_ what the "
        "judge read out of it (empty: it named none, which is missing, not wrong)."
    )
    parser.add_argument(
        "--parameters", type=options.name_list, required=True, metavar="COLUMN,...", help="the parameters' columns"
    )
    parser.add_argument(
        "--prefix", default="judge_", metavar="TEXT", help="before the columns of the judge's reading (default: judge_)"
    )


def _statistics_recovery() -> tuple[str, ...]:
    """The names that ``--statistic`` accepts."""
    return ("label_recovery",)


def _read_recovery(arguments: argparse.Namespace, frame: pd.DataFrame) -> pd.DataFrame:
    """The records with item, cluster and language under these names."""
    from analytics.stats.cli.files import known_columns, renamed
    from analytics.stats.core.tables import TableError, TableProblem

    own = {name: getattr(arguments, f"column_{name}") for name in ("item", "language", "generator", "cluster")}
    named = {name: column for name, column in own.items() if column}
    frame = renamed(frame, named)
    columns = [*arguments.parameters, *(arguments.prefix + name for name in arguments.parameters)]
    if absent := [name for name in columns if name not in frame]:
        raise TableError([TableProblem(None, f"the column {name!r} is missing") for name in absent])
    default = tuple(column for column in ("language", "generator") if column in frame)
    arguments.by = default if arguments.by is None else known_columns(frame, arguments.by, named)
    return frame


def _run_recovery(arguments: argparse.Namespace, frame: pd.DataFrame) -> list[CellEstimate]:
    """The share recovered of each parameter, and of all."""
    from analytics.stats.judge.soundness import recovery_report

    return recovery_report(frame, arguments.parameters, prefix=arguments.prefix, by=arguments.by)


# --- the table -------------------------------------------------------------------------------------------------------
SUBCOMMANDS = {
    "surface": Subcommand(
        configure=_configure_surface,
        statistics=_statistics_surface,
        read=_read_surface,
        run=_run_surface,
        absent={"*": "the file has no dialogue", "pairwise_cosine": "it needs --embeddings"},
        speaks_for=None,
        no_sample="texts are described here, nobody rates",
    ),
    "rationales": Subcommand(
        configure=_configure_rationales,
        statistics=_statistics_rationales,
        run=_run_rationales,
        absent={"*": "nobody rated anything"},
        speaks_for="these raters",
        no_sample="what these raters wrote is described",
    ),
    "recovery": Subcommand(
        configure=_configure_recovery,
        statistics=_statistics_recovery,
        read=_read_recovery,
        run=_run_recovery,
        absent={"*": "the file has no dialogue with a parameter"},
        speaks_for="this judge",
        no_sample="it is about one judge, nobody else rates",
    ),
}
