"""Addresses of what the numbers say, and of a project's overview."""

from django.urls import path

from analytics.api import alignment as alignment_routes
from analytics.api import decisions as decision_routes
from analytics.api import exports as export_routes
from analytics.api import items as adjudication_routes
from analytics.api import items as item_routes
from analytics.api import numbers as routes
from analytics.api.study import StudyFindings
from analytics.api.workflow import Workflow
from analytics.views import (
    adjudication,
    alignment,
    audits,
    comparison,
    decisions,
    explore,
    exports,
    glossary,
    items,
    numbers,
    paired_judges,
    projects,
    shares,
    study,
    waves,
    workload,
)
from analytics.views.all_statistics import PARTS_PAGES, all_statistics
from analytics.views.generators import ROUTES_OF_STABILITY
from analytics.views.judge_page import judge_page
from analytics.views.planner import draw_next_items_view, further_ratings_page, take_back_next_items_view
from analytics.views.projects import workflow_page
from analytics.views.report_tab import report_tab

pages = [
    path("p/<slug:project>/", projects.project_page, name="project"),
    path("p/<slug:project>/glossary/", glossary.glossary_page, name="glossary"),
    path("p/<slug:project>/numbers/", numbers.numbers_page, name="numbers"),
    path("p/<slug:project>/numbers/<int:campaign>/study/", study.study_page, name="study"),
    path(
        "p/<slug:project>/numbers/<int:campaign>/study/<slug:picture>.<slug:kind>",
        study.study_picture,
        name="study_picture",
    ),
    path("p/<slug:project>/numbers/<int:campaign>/", numbers.campaign_numbers, name="campaign_numbers"),
    path(
        "p/<slug:project>/numbers/<int:campaign>/<int:snapshot>/bias.svg", numbers.bias_chart, name="numbers_bias_chart"
    ),
    path("p/<slug:project>/numbers/<int:campaign>/all/", all_statistics, name="all_statistics"),
    path("p/<slug:project>/numbers/<int:campaign>/report/", report_tab, name="report"),
    path("p/<slug:project>/numbers/<int:campaign>/explore/", explore.explore_page, name="numbers_explore"),
    path(
        "p/<slug:project>/numbers/<int:campaign>/explore/cells.csv",
        explore.explore_file,
        {"kind": "csv"},
        name="numbers_cells_csv",
    ),
    path(
        "p/<slug:project>/numbers/<int:campaign>/explore/cells.json",
        explore.explore_file,
        {"kind": "json"},
        name="numbers_cells_json",
    ),
    path("p/<slug:project>/numbers/<int:campaign>/comparison/", comparison.comparison_page, name="numbers_comparison"),
    path("p/<slug:project>/numbers/<int:campaign>/planner/draw/", draw_next_items_view, name="numbers_draw"),
    path("p/<slug:project>/numbers/<int:campaign>/planner/more/", further_ratings_page, name="numbers_further"),
    path(
        "p/<slug:project>/numbers/<int:campaign>/planner/take-back/",
        take_back_next_items_view,
        name="numbers_take_back",
    ),
    *(route for page in PARTS_PAGES for route in page.routes),
    *ROUTES_OF_STABILITY,
    path("p/<slug:project>/numbers/<int:campaign>/judges/", decisions.judge_decisions, name="judge_decisions"),
    path("p/<slug:project>/numbers/<int:campaign>/waves/", waves.waves_page, name="numbers_waves"),
    path("p/<slug:project>/numbers/<int:campaign>/workflow/", workflow_page, name="workflow"),
    path("p/<slug:project>/numbers/<int:campaign>/audits/", audits.judge_audits, name="judge_audits"),
    path("p/<slug:project>/judges/<int:judge>/", judge_page, name="judge"),
    path("p/<slug:project>/judges/<int:judge>/beside/", paired_judges.paired_judges_page, name="paired_judges"),
    path("p/<slug:project>/settings/thresholds/", decisions.thresholds_page, name="thresholds"),
    path("p/<slug:project>/numbers/<int:campaign>/items/", items.items_page, name="numbers_items"),
    path("p/<slug:project>/numbers/<int:campaign>/items.csv", items.items_file, name="numbers_items_file"),
    path("p/<slug:project>/numbers/<int:campaign>/items/<int:item>/", items.item_scores_page, name="numbers_item"),
    path("p/<slug:project>/numbers/<int:campaign>/adjudication/", adjudication.adjudication_page, name="adjudication"),
    path(
        "p/<slug:project>/numbers/<int:campaign>/adjudication/<int:item>/",
        adjudication.adjudicate_item,
        name="adjudicate_item",
    ),
    path("p/<slug:project>/numbers/<int:campaign>/work/", workload.workload_page, name="workload"),
    path("p/<slug:project>/numbers/<int:campaign>/work/pay-sheet.csv", workload.pay_sheet, name="pay_sheet"),
    path("p/<slug:project>/numbers/<int:campaign>/work/<int:duty>/rate/", workload.set_rate_view, name="set_pay_rate"),
    path("p/<slug:project>/numbers/<int:campaign>/meeting/", adjudication.meeting_page, name="meeting"),
    path(
        "p/<slug:project>/numbers/<int:campaign>/meeting/decisions.csv",
        adjudication.decisions_file,
        name="meeting_decisions_file",
    ),
    path("p/<slug:project>/export/", exports.export_page, name="export"),
    path("p/<slug:project>/export/publication/", exports.export_publication, name="export_publication"),
    path("p/<slug:project>/export/file/", exports.export_file, name="export_file"),
    path("p/<slug:project>/export/transfers/", exports.transfers_part, name="transfers"),
    path("p/<slug:project>/export/transfers/<uuid:transfer>/", exports.transfer_file, name="transfer_file"),
    path("p/<slug:project>/export/transfers/<uuid:transfer>/remove/", exports.remove_transfer, name="transfer_remove"),
    path("p/<slug:project>/import-bundle/", exports.import_bundle, name="import_bundle"),
    path("p/<slug:project>/alignments/", alignment.alignments_page, name="alignments"),
    path("p/<slug:project>/alignments/new/", alignment.new_alignment, name="alignment_new"),
    path("p/<slug:project>/alignments/<int:alignment_pk>/", alignment.alignment_page, name="alignment"),
    path(
        "p/<slug:project>/alignments/<int:alignment_pk>/close/",
        alignment.close_page,
        name="alignment_close",
    ),
    path(
        "p/<slug:project>/alignments/<int:alignment_pk>/budget/",
        alignment.set_alignment_budget,
        name="alignment_budget",
    ),
    path(
        "p/<slug:project>/alignments/<int:alignment_pk>/versions/<int:judge>/",
        alignment.candidate_page,
        name="alignment_version",
    ),
    path(
        "p/<slug:project>/alignments/<int:alignment_pk>/versions/<int:judge>/run/",
        alignment.run_version,
        name="alignment_run",
    ),
    path(
        "p/<slug:project>/alignments/<int:alignment_pk>/versions/<int:judge>/look/",
        alignment.look_page,
        name="alignment_look",
    ),
    path(
        "p/<slug:project>/alignments/<int:alignment_pk>/versions/<int:judge>/propose/",
        alignment.propose_version_view,
        name="alignment_propose",
    ),
    path("p/<slug:project>/alignments/<int:alignment_pk>/search/", alignment.start_search, name="alignment_search"),
    path(
        "p/<slug:project>/alignments/<int:alignment_pk>/proposals/<int:proposal>/",
        alignment.proposal_page,
        name="alignment_proposal",
    ),
    path("p/<slug:project>/settings/sharing/", shares.shares_page, name="shares"),
    path("p/<slug:project>/settings/sharing/<int:link>/revoke/", shares.revoke_share_view, name="share_revoke"),
    path("shared/<str:share>/", shares.shared_numbers, name="shared"),
    path("shared/<str:share>/figures.json", shares.shared_figures, name="shared_figures"),
    path("shared/<str:share>/rubric/", shares.shared_rubric, name="shared_rubric"),
    path("shared/<str:share>/<int:snapshot>/bias.svg", shares.shared_chart, name="shared_chart"),
    path("shared/<str:share>/<slug:table>.csv", shares.shared_table, name="shared_table"),
    path("shared/<str:share>/<slug:table>.csv.sha256", shares.shared_digest, name="shared_digest"),
]

api = [
    path("projects/<slug:project>/campaigns/<int:campaign>/numbers/", routes.Numbers.as_view(), name="api_numbers"),
    path(
        "projects/<slug:project>/campaigns/<int:campaign>/estimates/", routes.Estimates.as_view(), name="api_estimates"
    ),
    path(
        "projects/<slug:project>/campaigns/<int:campaign>/ratings.csv",
        routes.RatingsTableDownload.as_view(),
        name="api_ratings_table",
    ),
    path(
        "projects/<slug:project>/campaigns/<int:campaign>/soft-labels.<str:kind>",
        routes.SoftLabelsDownload.as_view(),
        name="api_soft_labels",
    ),
    path(
        "projects/<slug:project>/campaigns/<int:campaign>/items/",
        item_routes.CampaignItems.as_view(),
        name="api_campaign_items",
    ),
    path(
        "projects/<slug:project>/campaigns/<int:campaign>/items/<int:item>/",
        item_routes.CampaignItem.as_view(),
        name="api_campaign_item",
    ),
    path(
        "projects/<slug:project>/campaigns/<int:campaign>/adjudication/",
        adjudication_routes.AdjudicationQueue.as_view(),
        name="api_adjudication",
    ),
    path(
        "projects/<slug:project>/campaigns/<int:campaign>/items/<int:item>/adjudications/",
        adjudication_routes.ItemAdjudications.as_view(),
        name="api_item_adjudications",
    ),
    path(
        "projects/<slug:project>/campaigns/<int:campaign>/meeting-decisions/",
        adjudication_routes.MeetingDecisions.as_view(),
        name="api_meeting_decisions",
    ),
    path(
        "projects/<slug:project>/campaigns/<int:campaign>/duties/<int:duty>/next-items/",
        routes.DrawNextItems.as_view(),
        name="api_next_items",
    ),
    path(
        "projects/<slug:project>/campaigns/<int:campaign>/decisions/",
        decision_routes.Decisions.as_view(),
        name="api_decisions",
    ),
    path("projects/<slug:project>/campaigns/<int:campaign>/study/", StudyFindings.as_view(), name="api_study"),
    path("projects/<slug:project>/campaigns/<int:campaign>/workflow/", Workflow.as_view(), name="api_workflow"),
    path(
        "projects/<slug:project>/campaigns/<int:campaign>/decisions/history/",
        decision_routes.DecisionHistory.as_view(),
        name="api_decision_history",
    ),
    path(
        "projects/<slug:project>/campaigns/<int:campaign>/comparison/",
        routes.JudgeComparison.as_view(),
        name="api_comparison",
    ),
    path("projects/<slug:project>/alignments/", alignment_routes.Alignments.as_view(), name="api_alignments"),
    path(
        "projects/<slug:project>/alignments/<int:alignment_pk>/",
        alignment_routes.AlignmentDetail.as_view(),
        name="api_alignment",
    ),
    path(
        "projects/<slug:project>/alignments/<int:alignment_pk>/close/",
        alignment_routes.CloseAlignment.as_view(),
        name="api_alignment_close",
    ),
    path(
        "projects/<slug:project>/alignments/<int:alignment_pk>/budget/",
        alignment_routes.AlignmentBudget.as_view(),
        name="api_alignment_budget",
    ),
    path(
        "projects/<slug:project>/alignments/<int:alignment_pk>/versions/",
        alignment_routes.AlignmentVersions.as_view(),
        name="api_alignment_versions",
    ),
    path(
        "projects/<slug:project>/alignments/<int:alignment_pk>/versions/<int:judge>/run/",
        alignment_routes.AlignmentVersionRun.as_view(),
        name="api_alignment_run",
    ),
    path(
        "projects/<slug:project>/alignments/<int:alignment_pk>/searches/",
        alignment_routes.StartSearch.as_view(),
        name="api_alignment_search",
    ),
    path(
        "projects/<slug:project>/alignments/<int:alignment_pk>/versions/<int:judge>/proposals/",
        alignment_routes.ProposeVersion.as_view(),
        name="api_alignment_propose",
    ),
    path(
        "projects/<slug:project>/alignments/<int:alignment_pk>/versions/<int:judge>/look/",
        alignment_routes.TakeLook.as_view(),
        name="api_alignment_look",
    ),
    path(
        "projects/<slug:project>/alignments/<int:alignment_pk>/versions/<int:judge>/confusions/",
        alignment_routes.AlignmentConfusions.as_view(),
        name="api_alignment_confusions",
    ),
    path("projects/<slug:project>/thresholds/", decision_routes.DeclaredThresholds.as_view(), name="api_thresholds"),
    path("projects/<slug:project>/shares/", routes.Shares.as_view(), name="api_shares"),
    path("projects/<slug:project>/shares/<int:link>/", routes.ShareDetail.as_view(), name="api_share"),
    path("projects/<slug:project>/exports/<slug:what>/", export_routes.Exports.as_view(), name="api_export"),
    path(
        "projects/<slug:project>/exports/<slug:what>/size/", export_routes.ExportSize.as_view(), name="api_export_size"
    ),
    path("projects/<slug:project>/transfers/", export_routes.Transfers.as_view(), name="api_transfers"),
    path(
        "projects/<slug:project>/transfers/<uuid:transfer>/",
        export_routes.TransferDetail.as_view(),
        name="api_transfer",
    ),
    path(
        "projects/<slug:project>/transfers/<uuid:transfer>/content/",
        export_routes.TransferContent.as_view(),
        name="api_transfer_content",
    ),
    path("projects/<slug:project>/bundles/", export_routes.Bundles.as_view(), name="api_bundles"),
]
