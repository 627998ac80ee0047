"""Addresses of judges, their runs and imported verdicts."""

from django.urls import path

from judging.api import curations as curation_routes
from judging.api import designs as design_routes
from judging.api import error_tags as error_tag_routes
from judging.api import generation as generation_routes
from judging.api import imports as import_routes
from judging.api import item_plans as item_plan_routes
from judging.api import judges as judge_routes
from judging.api import providers as provider_routes
from judging.api import runs as run_routes
from judging.api import spending as spending_routes
from judging.views import curations, error_tags, generation, imports, item_plans, judges, providers, runs, spending

pages = [
    path("providers/", providers.providers_page, name="providers"),
    path("providers/<str:provider>/", providers.provider_page, name="provider"),
    path("providers/<str:provider>/test/", providers.begin_provider_test, name="provider_test"),
    path("providers/<str:provider>/remove/", providers.remove_provider_view, name="provider_remove"),
    path("p/<slug:project>/judges/", judges.judges_page, name="judges"),
    path("p/<slug:project>/judges/new/", judges.new_judge, name="judge_new"),
    path("p/<slug:project>/judges/tests/<uuid:series>/", judges.judge_trials, name="judge_trials"),
    path("p/<slug:project>/judges/<int:judge>/runs/new/", runs.start_run, name="run_start"),
    path("p/<slug:project>/judges/<int:judge>/errors/", error_tags.judge_errors, name="judge_errors"),
    path("p/<slug:project>/judges/<int:judge>/errors.csv", error_tags.judge_errors_csv, name="judge_errors_csv"),
    path("p/<slug:project>/judges/<int:judge>/spending.csv", spending.judge_spending_csv, name="judge_spending_csv"),
    path("p/<slug:project>/spending/", spending.spending_page, name="spending"),
    path("p/<slug:project>/spending.csv", spending.spending_csv, name="spending_csv"),
    path("p/<slug:project>/verdicts/<int:verdict>/tags/", error_tags.add_error_tag, name="error_tag_add"),
    path("p/<slug:project>/verdict-tags/<int:tag>/remove/", error_tags.remove_error_tag, name="error_tag_remove"),
    path("p/<slug:project>/rubrics/prompt/", judges.rubric_prompt, name="rubric_prompt"),
    path("p/<slug:project>/judges/<int:judge>/audit/", runs.start_audit, name="audit_start"),
    path("p/<slug:project>/runs/", runs.runs_page, name="runs"),
    path("p/<slug:project>/runs/<int:run>/", runs.run_page, name="run"),
    path("p/<slug:project>/runs/<int:run>/live/", runs.run_live, name="run_live"),
    path("p/<slug:project>/runs/<int:run>/state/", runs.move_run, name="run_move"),
    path("p/<slug:project>/runs/<int:run>/budget/", runs.set_budget, name="run_budget"),
    path("p/<slug:project>/runs/<int:run>/calls/<int:call>/", runs.call_page, name="call"),
    path("p/<slug:project>/datasets/<int:dataset>/curate/", curations.new_curation, name="curation_new"),
    path("p/<slug:project>/datasets/<int:dataset>/answers/", item_plans.new_answers, name="answers_new"),
    path("p/<slug:project>/curations/<int:curation>/", curations.curation_page, name="curation"),
    path("p/<slug:project>/curations/<int:curation>/items.csv", curations.curation_csv, name="curation_csv"),
    path("p/<slug:project>/generation/", generation.generation_page, name="generation"),
    path("p/<slug:project>/generation/new/", generation.new_plan, name="generation_new"),
    path("p/<slug:project>/generation/specs/", generation.specs_page, name="generation_specs"),
    path("p/<slug:project>/generation/specs/<slug:spec>/", generation.spec_page, name="generation_spec"),
    path("p/<slug:project>/generation/<int:plan>/", generation.plan_page, name="generation_plan"),
    path("p/<slug:project>/generation/<int:plan>/live/", generation.plan_live, name="generation_live"),
    path("p/<slug:project>/generation/<int:plan>/state/", generation.move_plan, name="generation_move"),
    path("p/<slug:project>/generation/<int:plan>/budget/", generation.set_plan_budget_view, name="generation_budget"),
    path("p/<slug:project>/generation/<int:plan>/store/", generation.store_plan, name="generation_store"),
    path(
        "p/<slug:project>/generation/<int:plan>/utterances/",
        generation.store_utterances_view,
        name="generation_utterances",
    ),
    path("p/<slug:project>/generation/<int:plan>/reading/", generation.reading_page, name="generation_reading"),
    path("p/<slug:project>/generation/<int:plan>/texts/", generation.texts_page, name="generation_texts"),
    path("p/<slug:project>/generation/<int:plan>/texts/<int:text>/", generation.text_page, name="generation_text"),
    path(
        "p/<slug:project>/generation/<int:plan>/texts/<int:text>/decision/",
        generation.decide_text,
        name="generation_decision",
    ),
    path("p/<slug:project>/designs/", runs.designs_page, name="designs"),
    path("p/<slug:project>/designs/new/", runs.new_design, name="design_new"),
    path("p/<slug:project>/designs/<int:design>/", runs.design_page, name="design"),
    path("p/<slug:project>/designs/<int:design>/live/", runs.design_live, name="design_live"),
    path("p/<slug:project>/designs/<int:design>/state/", runs.move_design, name="design_move"),
    path("p/<slug:project>/designs/<int:design>/budget/", runs.set_design_budget, name="design_budget"),
    path("p/<slug:project>/verdict-imports/<int:file_import>/", imports.verdict_import, name="verdict_import"),
    path(
        "p/<slug:project>/verdict-imports/<int:file_import>/store/",
        imports.store_verdict_import,
        name="verdict_import_store",
    ),
    path(
        "p/<slug:project>/verdict-imports/<int:file_import>/problems.csv",
        imports.verdict_import_problems,
        name="verdict_import_problems",
    ),
    path(
        "p/<slug:project>/verdict-imports/<int:file_import>/undo/",
        imports.undo_verdict_import,
        name="verdict_import_undo",
    ),
    path("p/<slug:project>/study-imports/<int:file_import>/", imports.study_import, name="study_import"),
    path(
        "p/<slug:project>/study-imports/<int:file_import>/store/",
        imports.store_study_import,
        name="study_import_store",
    ),
    path(
        "p/<slug:project>/study-imports/<int:file_import>/undo/",
        imports.undo_study_import,
        name="study_import_undo",
    ),
    path(
        "p/<slug:project>/study-imports/<int:file_import>/problems.csv",
        imports.study_import_problems,
        name="study_import_problems",
    ),
]

api = [
    path(
        "projects/<slug:project>/generation/specs/",
        generation_routes.GenerationSpecs.as_view(),
        name="api_generation_specs",
    ),
    path(
        "projects/<slug:project>/datasets/<int:dataset>/answers/",
        item_plan_routes.AnswersPlans.as_view(),
        name="api_answers_plans",
    ),
    path(
        "projects/<slug:project>/generation/", generation_routes.GenerationPlans.as_view(), name="api_generation_plans"
    ),
    path(
        "projects/<slug:project>/generation/<int:plan>/",
        generation_routes.GenerationPlanDetail.as_view(),
        name="api_generation_plan",
    ),
    path(
        "projects/<slug:project>/generation/<int:plan>/forecast/",
        generation_routes.GenerationPlanForecast.as_view(),
        name="api_generation_forecast",
    ),
    path(
        "projects/<slug:project>/generation/<int:plan>/examples/",
        generation_routes.StartPlanExamples.as_view(),
        name="api_generation_examples",
    ),
    path(
        "projects/<slug:project>/generation/<int:plan>/start/",
        generation_routes.StartPlan.as_view(),
        name="api_generation_start",
    ),
    path(
        "projects/<slug:project>/generation/<int:plan>/pause/",
        generation_routes.PausePlan.as_view(),
        name="api_generation_pause",
    ),
    path(
        "projects/<slug:project>/generation/<int:plan>/resume/",
        generation_routes.ResumePlan.as_view(),
        name="api_generation_resume",
    ),
    path(
        "projects/<slug:project>/generation/<int:plan>/cancel/",
        generation_routes.CancelPlan.as_view(),
        name="api_generation_cancel",
    ),
    path(
        "projects/<slug:project>/generation/<int:plan>/again/",
        generation_routes.AskPlanAgain.as_view(),
        name="api_generation_again",
    ),
    path(
        "projects/<slug:project>/generation/<int:plan>/budget/",
        generation_routes.GenerationPlanBudget.as_view(),
        name="api_generation_budget",
    ),
    path(
        "projects/<slug:project>/generation/<int:plan>/store/",
        generation_routes.StorePlan.as_view(),
        name="api_generation_store",
    ),
    path(
        "projects/<slug:project>/generation/<int:plan>/utterances/",
        generation_routes.StoreUtterances.as_view(),
        name="api_generation_utterances",
    ),
    path(
        "projects/<slug:project>/generation/<int:plan>/texts/",
        generation_routes.WrittenTexts.as_view(),
        name="api_generation_texts",
    ),
    path(
        "projects/<slug:project>/generation/<int:plan>/texts/<int:text>/",
        generation_routes.WrittenTextDetail.as_view(),
        name="api_generation_text",
    ),
    path(
        "projects/<slug:project>/generation/<int:plan>/texts/<int:text>/decision/",
        generation_routes.TextDecision.as_view(),
        name="api_generation_decision",
    ),
    path("providers/", provider_routes.Providers.as_view(), name="api_providers"),
    path("providers/<str:provider>/", provider_routes.ProviderDetail.as_view(), name="api_provider"),
    path("providers/<str:provider>/tests/", provider_routes.ProviderTests.as_view(), name="api_provider_tests"),
    path("projects/<slug:project>/judges/", judge_routes.Judges.as_view(), name="api_judges"),
    path("projects/<slug:project>/judges/studies/", judge_routes.JudgeStudies.as_view(), name="api_judge_studies"),
    path("projects/<slug:project>/judges/<int:judge>/", judge_routes.JudgeDetail.as_view(), name="api_judge"),
    path(
        "projects/<slug:project>/judges/<int:judge>/preview/",
        judge_routes.JudgePreview.as_view(),
        name="api_judge_preview",
    ),
    path(
        "projects/<slug:project>/judges/<int:judge>/errors/",
        error_tag_routes.JudgeErrors.as_view(),
        name="api_judge_errors",
    ),
    path("projects/<slug:project>/error-tags/", error_tag_routes.ErrorTags.as_view(), name="api_error_tags"),
    path(
        "projects/<slug:project>/error-tags/<int:tag>/",
        error_tag_routes.ErrorTagDetail.as_view(),
        name="api_error_tag",
    ),
    path("projects/<slug:project>/spending/", spending_routes.Spending.as_view(), name="api_spending"),
    path("projects/<slug:project>/runs/", run_routes.Runs.as_view(), name="api_runs"),
    path("projects/<slug:project>/runs/forecast/", run_routes.RunForecast.as_view(), name="api_run_forecast"),
    path("projects/<slug:project>/runs/<int:run>/", run_routes.RunDetail.as_view(), name="api_run"),
    path("projects/<slug:project>/runs/<int:run>/pause/", run_routes.Pause.as_view(), name="api_run_pause"),
    path("projects/<slug:project>/runs/<int:run>/resume/", run_routes.Resume.as_view(), name="api_run_resume"),
    path("projects/<slug:project>/runs/<int:run>/cancel/", run_routes.Cancel.as_view(), name="api_run_cancel"),
    path(
        "projects/<slug:project>/runs/<int:run>/rerun-failed/",
        run_routes.RerunFailed.as_view(),
        name="api_run_rerun_failed",
    ),
    path("projects/<slug:project>/runs/<int:run>/rerun/", run_routes.Rerun.as_view(), name="api_run_rerun"),
    path("projects/<slug:project>/runs/<int:run>/budget/", run_routes.Budget.as_view(), name="api_run_budget"),
    path("projects/<slug:project>/runs/<int:run>/calls/", run_routes.Calls.as_view(), name="api_calls"),
    path("projects/<slug:project>/audits/", run_routes.Audits.as_view(), name="api_audits"),
    path("projects/<slug:project>/audits/forecast/", run_routes.AuditForecast.as_view(), name="api_audit_forecast"),
    path(
        "projects/<slug:project>/runs/<int:run>/calls/<int:call>/",
        run_routes.CallDetail.as_view(),
        name="api_call",
    ),
    path("projects/<slug:project>/curations/", curation_routes.Curations.as_view(), name="api_curations"),
    path(
        "projects/<slug:project>/curations/preview/",
        curation_routes.CurationPreview.as_view(),
        name="api_curation_preview",
    ),
    path(
        "projects/<slug:project>/curations/<int:curation>/",
        curation_routes.CurationDetail.as_view(),
        name="api_curation",
    ),
    path(
        "projects/<slug:project>/curations/<int:curation>/items/",
        curation_routes.CurationItems.as_view(),
        name="api_curation_items",
    ),
    path("projects/<slug:project>/designs/", design_routes.Designs.as_view(), name="api_designs"),
    path("projects/<slug:project>/designs/<int:design>/", design_routes.DesignDetail.as_view(), name="api_design"),
    path(
        "projects/<slug:project>/designs/<int:design>/forecast/",
        design_routes.DesignForecastView.as_view(),
        name="api_design_forecast",
    ),
    path(
        "projects/<slug:project>/designs/<int:design>/pilot/",
        design_routes.StartPilot.as_view(),
        name="api_design_pilot",
    ),
    path(
        "projects/<slug:project>/designs/<int:design>/start/",
        design_routes.StartDesign.as_view(),
        name="api_design_start",
    ),
    path(
        "projects/<slug:project>/designs/<int:design>/pause/",
        design_routes.PauseDesign.as_view(),
        name="api_design_pause",
    ),
    path(
        "projects/<slug:project>/designs/<int:design>/resume/",
        design_routes.ResumeDesign.as_view(),
        name="api_design_resume",
    ),
    path(
        "projects/<slug:project>/designs/<int:design>/cancel/",
        design_routes.CancelDesign.as_view(),
        name="api_design_cancel",
    ),
    path(
        "projects/<slug:project>/designs/<int:design>/budget/",
        design_routes.DesignBudget.as_view(),
        name="api_design_budget",
    ),
    path("projects/<slug:project>/verdicts/", run_routes.Verdicts.as_view(), name="api_verdicts"),
    path(
        "projects/<slug:project>/verdict-imports/<int:file_import>/preview/",
        import_routes.VerdictPreview.as_view(),
        name="api_verdict_import_preview",
    ),
    path(
        "projects/<slug:project>/verdict-imports/<int:file_import>/store/",
        import_routes.VerdictStorage.as_view(),
        name="api_verdict_import_store",
    ),
    path(
        "projects/<slug:project>/verdict-imports/<int:file_import>/undo/",
        import_routes.VerdictUndo.as_view(),
        name="api_verdict_import_undo",
    ),
    path("projects/<slug:project>/studies/", import_routes.Studies.as_view(), name="api_studies"),
    path(
        "projects/<slug:project>/study-imports/<int:file_import>/preview/",
        import_routes.StudyPreview.as_view(),
        name="api_study_import_preview",
    ),
    path(
        "projects/<slug:project>/study-imports/<int:file_import>/store/",
        import_routes.StudyStorage.as_view(),
        name="api_study_import_store",
    ),
    path(
        "projects/<slug:project>/study-imports/<int:file_import>/undo/",
        import_routes.StudyUndo.as_view(),
        name="api_study_import_undo",
    ),
]
