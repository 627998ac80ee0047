"""The subcommands of ``panelbench stats``: one module each, named like the subcommand with ``_`` for ``-``.

A module holds three functions and a table, and perhaps one more function:

``configure(parser: argparse.ArgumentParser) -> None``
    Adds the subcommand's own options. FILE, the column names (--item ...), --by, --level, --scale, --raters,
    --positional, --pool, --min-items, --statistic, --bootstrap, --seed, --format are there already.

``run(arguments: argparse.Namespace, table: RatingsTable) -> Sequence[CellEstimate]``
    The estimates, in the order they are shown. ``arguments.by``, ``.raters``, ``.statistic`` are tuples of names
    (``.raters`` and ``.statistic`` None when not given; filter before computing where that saves time: the command line
    filters ``--statistic`` again after ``run``). ``arguments.judge``, where the subcommand adds ``--judge``, may be
    one name or a list of names: those raters are judges in ``table`` even without a ``rater_kind`` column. Raise
    ``tables.TableError([Problem(None, sentence)])`` to refuse: exit status 2, the sentence on standard error.

``names() -> tuple[str, ...]``
    The statistics ``--statistic`` may name; any other name ends with exit status 2.

``ABSENT: dict[str, str]``
    What a statistic needs that was asked for by name and has no row in any cell; "*" stands for all others.

``SPEAKS_FOR: str | None``
    For whom a figure speaks that does not say so itself (``Estimate.speaks_for``); None where it is about no rater.

``NO_SAMPLE: str``
    Why ``--raters-as sample`` is refused; empty where ``run`` heeds ``arguments.raters_as``.

``read(arguments: argparse.Namespace, frame: pandas.DataFrame) -> Any`` (optional)
    Makes something else of FILE's records; ``run`` then gets that instead of a ratings table.

The name and the one-line help of each subcommand stand in ``commandline.SUBCOMMANDS``, so that ``--help`` imports none
of them. Import pandas, scipy and the statistics inside ``run``, never at module level.
"""
