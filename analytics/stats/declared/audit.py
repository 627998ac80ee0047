"""Declarations: audits of a judge, such as whether it repeats its scores and whether text length influences them."""

from __future__ import annotations

from analytics.stats.declared.declaring import Statistic, StatisticsReport, translatable

_AUDIT = StatisticsReport(
    "audit",
    "analytics.stats.judge.soundness:audits_of_judge",
    group="soundness",
    needs=("judge",),
    doc="methods/audits.md#from-a-file",
    prefix="audit.",
    takes=("by", "pool", "confidence"),
    is_whole=True,
    in_file_order=True,
    verdicts="all",
    once_per=("judge",),
    reads=("length_of_text", "judge_family", "generator_family"),
)
REPORTS = (_AUDIT,)
STATISTICS = (
    Statistic(
        "audit.repeat_sd",
        _AUDIT,
        translatable("Standard deviation over repeats"),
        over_repeats=True,
        short_title=translatable("Standard deviation"),
        better="lower",
    ),
    Statistic(
        "audit.flip_rate",
        _AUDIT,
        translatable("Items that change over repeats"),
        over_repeats=True,
        short_title=translatable("Items that change"),
        written="share",
        better="lower",
    ),
    Statistic("audit.scale_use", _AUDIT, translatable("Use of the scale"), written="share", better="zero"),
    Statistic("audit.unreadable", _AUDIT, translatable("Verdicts without a score"), better="lower"),
    Statistic("audit.verbosity", _AUDIT, translatable("Error per doubling of the text’s length"), better="zero"),
    Statistic("audit.self_preference", _AUDIT, translatable("Preference for the judge’s own family"), better="zero"),
    Statistic(
        "audit.rated_difference",
        _AUDIT,
        translatable("Rated items less those that only the judge scored"),
        written="signed",
        better="zero",
    ),
    Statistic(
        "audit.bias_weighted",
        _AUDIT,
        translatable("Bias over all items that the judge scored, weighted"),
        written="signed",
        better="zero",
    ),
)
