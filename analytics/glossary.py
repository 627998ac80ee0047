"""Words of the field that pages explain where they stand, in two plain sentences at most each.

Templates name them by key (`{% terms %}`); docs/ says more under `doc`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _


@dataclass(frozen=True, slots=True)
class Term:
    """A word, what it means, and where docs/ explains it: a file and an anchor."""

    key: str
    word: Any
    text: Any
    doc: str

    @property
    def docs(self) -> str:
        return f"docs/{self.doc}"


TERMS = {
    term.key: term
    for term in (
        Term(
            "alpha",
            _("Krippendorff’s α"),
            _(
                "How much raters agree beyond chance: 1 is perfect, 0 is chance, below 0 they contradict each "
                "other. It works with missing ratings and on every kind of scale."
            ),
            "methods/agreement.md#krippendorffs-alpha",
        ),
        Term(
            "ac",
            _("Gwet’s AC"),
            _(
                "Agreement beyond chance that stays meaningful where nearly all scores are the same. Read it "
                "beside α when one score dominates."
            ),
            "methods/agreement.md#gwets-ac1-and-ac2-brennan-prediger-conger",
        ),
        Term(
            "kappa",
            _("Cohen’s κ"),
            _(
                "Agreement beyond chance of two raters, or of a judge and the reference, on items that both scored. "
                "On ordered scales large differences count more than small ones."
            ),
            "methods/agreement.md#cohens-kappa",
        ),
        Term(
            "icc",
            _("ICC"),
            _(
                "The share of the differences between scores that comes from the items. At 1, raters agree on every "
                "item; the variants ICC(3) ignore that some always score lower."
            ),
            "methods/agreement.md#intraclass-correlation",
        ),
        Term(
            "reliability",
            _("Reliability"),
            _(
                "How well the mean of several raters would be repeated by other raters like them. It grows with "
                "the number of raters of an item."
            ),
            "methods/agreement.md#raters-per-item",
        ),
        Term(
            "interval",
            _("Interval"),
            _(
                "The range in which the true value lies with the stated confidence, usually 95%. A wide one says "
                "little: few independent items, or scores that vary much."
            ),
            "methods/agreement.md#rules-for-all-figures",
        ),
        Term(
            "cluster",
            _("Cluster"),
            _("Items of one scenario, which are not independent of each other. Intervals count clusters, not items."),
            "methods/agreement.md#rules-for-all-figures",
        ),
        Term(
            "preliminary",
            _("Preliminary"),
            _("Fewer than 30 items or clusters stand behind this figure. It can still change much."),
            "methods/agreement.md#rules-for-all-figures",
        ),
        Term(
            "approximate",
            _("Approximate"),
            _(
                "This kind of interval contains the true value only about as often as it says, sometimes less. Do not "
                "decide by a hair’s breadth."
            ),
            "methods/agreement.md#rules-for-all-figures",
        ),
        Term(
            "conservative",
            _("Conservative"),
            _("This kind of interval is wider than it has to be. What lies outside it is excluded all the more."),
            "methods/agreement.md#rules-for-all-figures",
        ),
        Term(
            "reference",
            _("Reference"),
            _(
                "The one score that the people’s ratings of an item come to, by mean, median, mode or a decision."
                " A judge is compared with it."
            ),
            "methods/calibration.md#the-reference",
        ),
        Term(
            "bias",
            _("Bias"),
            _(
                "The mean of the judge’s score less that of the people on the same items, in points. Above 0 the "
                "judge scores higher than they do."
            ),
            "methods/calibration.md#errors-mae-rmse-bias",
        ),
        Term(
            "mae",
            _("Mean absolute error"),
            _("By how many points the judge’s score is away from the people’s on average, in either direction."),
            "methods/calibration.md#errors-mae-rmse-bias",
        ),
        Term(
            "calibration",
            _("Calibration"),
            _(
                "How a judge’s scores relate to those of the people on the same items. From it follows whether "
                "its means can be corrected."
            ),
            "methods/calibration.md",
        ),
        Term(
            "ceiling",
            _("Ceiling"),
            _(
                "How well one annotator agrees with the others in the same comparison. A judge that reaches it "
                "agrees with people as well as one of them does; some judges agree better."
            ),
            "methods/calibration.md#the-human-ceiling-ceiling_accuracy-ceiling_mae-ceiling_pearson",
        ),
        Term(
            "omega",
            _("Alternative annotator test"),
            _(
                "Whether the judge could take the place of a person. ω is the share of annotators whom it could "
                "replace: a test shows that it matches the others no worse, up to a tolerance."
            ),
            "methods/calibration.md#the-alternative-annotator-test-alt_test_omega-alt_test_rho",
        ),
        Term(
            "margin",
            _("Margin"),
            _(
                "How far a judge’s mean may lie from the people’s before it counts as biased. The project "
                "declares it before the figures are seen."
            ),
            "gate.md#first-declare-thresholds",
        ),
        Term(
            "not_certain",
            _("Not certain"),
            _(
                "The interval contains the threshold, so the figure may lie on either side of it. A decision that is "
                "not certain applies now; more items may change it."
            ),
            "gate.md#the-decisions",
        ),
        Term(
            "correction",
            _("Correction"),
            _(
                "A mean over all items from the judge’s scores, less its error on the items that people rated, too. "
                "The better the judge follows people, the more its scores count."
            ),
            "methods/correction.md",
        ),
        Term(
            "severity",
            _("Severity"),
            _("How much lower or higher somebody scores than others on the same items."),
            "methods/raters.md#severity-on-one-scale-many-facet-rasch",
        ),
        Term(
            "infit",
            _("Infit"),
            _(
                "How well a rater’s scores follow the model: near 1 as expected, above 1.5 erratic, below 0.5 more "
                "predictable than expected."
            ),
            "methods/raters.md#severity-on-one-scale-many-facet-rasch",
        ),
        Term(
            "dependability",
            _("Dependability (Φ)"),
            _(
                "The share of the differences between mean scores that comes from the items, with so many raters."
                " 0.8 is often asked for."
            ),
            "methods/raters.md#variance-by-source-generalizability",
        ),
        Term(
            "overlap",
            _("Overlap"),
            _("How many annotators rate the same item. Agreement needs two or more."),
            "glossary.md",
        ),
        Term(
            "assignment",
            _("Assignment"),
            _("One item for one annotator. Once it is submitted it is an annotation, with a rating on each criterion."),
            "glossary.md",
        ),
        Term(
            "rating",
            _("Rating"),
            _("One score, or N/A, by one person on one criterion of one item."),
            "glossary.md",
        ),
        Term(
            "label",
            _("Label"),
            _(
                "What people say of one item on one criterion: the mean of their ratings. However many people rated "
                "the item, it is one label."
            ),
            "glossary.md",
        ),
        Term(
            "wave",
            _("Wave"),
            _("Items that came into a task at one time: all of them, a selection, or the next items that were drawn."),
            "glossary.md",
        ),
        Term(
            "inclusion",
            _("Probability of inclusion"),
            _(
                "How likely the draw was to choose an item. It is stored, so that means of unequally drawn items "
                "stay right."
            ),
            "methods/planning.md#the-next-items-to-label",
        ),
        Term(
            "seed",
            _("Seed"),
            _("The number from which a draw begins. The same seed on the same data gives the same draw again."),
            "methods/planning.md#the-next-items-to-label",
        ),
        Term(
            "pareto",
            _("Pareto line"),
            _(
                "A judge is on it if no other agrees better at the same or a lower cost, or equally well at a lower "
                "cost. Every other judge is beaten so by one on the line."
            ),
            "methods/comparison.md#cost",
        ),
        Term(
            "flip",
            _("Changed scores"),
            _(
                "The share of items that get different scores when the judge is asked the same again. A judge that "
                "often changes its mind needs several repeats."
            ),
            "methods/audits.md",
        ),
    )
}
