"""The URL patterns of the annotation app."""

from django.urls import path

from annotation.api import campaigns as campaign_routes
from annotation.api import campaigns as duty_routes
from annotation.api import checkup as checkup_routes
from annotation.api import content as content_routes
from annotation.api import content as rubric_routes
from annotation.api import content as taxonomy_routes
from annotation.api import imports as import_routes
from annotation.api import prompts as prompt_routes
from annotation.api import qualification as qualification_routes
from annotation.api import uploads as upload_routes
from annotation.api import user_comparisons as comparison_routes
from annotation.api import writing as writing_routes
from annotation.desk import urls as desk
from annotation.views import (
    campaigns,
    checkup,
    datasets,
    imports,
    panels,
    prompts,
    qualification,
    rubrics,
    taxonomies,
    user_comparisons,
    writing,
)

pages = [
    *desk.pages,
    path("p/<slug:project>/datasets/", datasets.datasets_page, name="datasets"),
    path("p/<slug:project>/datasets/<int:dataset>/", datasets.dataset_page, name="dataset"),
    path("p/<slug:project>/datasets/<int:dataset>/checkup/", checkup.dataset_checkup_page, name="dataset_checkup"),
    path("p/<slug:project>/datasets/<int:dataset>/checkup/check/", checkup.check_dataset_view, name="dataset_check"),
    path(
        "p/<slug:project>/datasets/<int:dataset>/checkup/leave-out/", checkup.leave_out_view, name="dataset_leave_out"
    ),
    path("p/<slug:project>/datasets/<int:dataset>/items/<int:item>/", datasets.item_page, name="item"),
    path("p/<slug:project>/datasets/<int:dataset>/text-format/", datasets.set_markup_view, name="dataset_markup"),
    path("p/<slug:project>/imports/", imports.imports_page, name="imports"),
    path("p/<slug:project>/imports/new/", imports.new_import, name="import_new"),
    path("p/<slug:project>/imports/<int:file_import>/", imports.show_import, name="import"),
    path("p/<slug:project>/imports/<int:file_import>/map/", imports.map_import, name="import_map"),
    path("p/<slug:project>/imports/<int:file_import>/store/", imports.start_storing, name="import_store"),
    path("p/<slug:project>/imports/<int:file_import>/progress/", imports.import_progress, name="import_progress"),
    path("p/<slug:project>/imports/<int:file_import>/check/", imports.check_again, name="import_check"),
    path("p/<slug:project>/imports/<int:file_import>/also/", imports.also_import, name="import_also"),
    path("p/<slug:project>/imports/<int:file_import>/apart/", imports.take_apart, name="import_apart"),
    path("p/<slug:project>/imports/<int:file_import>/problems.csv", imports.import_problems, name="import_problems"),
    path("p/<slug:project>/imports/<int:file_import>/save-mapping/", imports.save_mapping, name="import_save_mapping"),
    path("p/<slug:project>/imports/<int:file_import>/undo/", imports.undo_import, name="import_undo"),
    path("p/<slug:project>/imports/<int:file_import>/discard/", imports.discard_import, name="import_discard"),
    path("p/<slug:project>/imports/<int:file_import>/mapping.yaml", imports.import_mapping, name="import_mapping"),
    path("p/<slug:project>/imports/<int:file_import>/files/<int:file>/", imports.import_file, name="import_file"),
    path("p/<slug:project>/imports/<int:file_import>/mappings/", imports.import_offers, name="import_offers"),
    path("p/<slug:project>/mappings/", imports.mappings_page, name="mappings"),
    path("p/<slug:project>/mappings/<int:mapping>.yaml", imports.mapping_yaml, name="mapping_yaml"),
    path("p/<slug:project>/mappings/<int:mapping>/rename/", imports.rename_mapping, name="mapping_rename"),
    path("p/<slug:project>/mappings/<int:mapping>/delete/", imports.delete_mapping, name="mapping_delete"),
    path("p/<slug:project>/rubrics/", rubrics.rubrics_page, name="rubrics"),
    path("p/<slug:project>/rubrics/new/", rubrics.new_rubric, name="rubric_new"),
    path("p/<slug:project>/rubrics/preview/", rubrics.preview_rubric, name="rubric_preview"),
    path("p/<slug:project>/rubrics/<slug:rubric>/v<int:number>/edit/", rubrics.edit_rubric, name="rubric_edit"),
    path("p/<slug:project>/rubrics/<slug:rubric>/v<int:number>/", rubrics.version_page, name="rubric_version"),
    path("p/<slug:project>/rubrics/<slug:rubric>/v<int:number>.yaml", rubrics.version_yaml, name="rubric_yaml"),
    path(
        "p/<slug:project>/rubrics/<slug:rubric>/v<int:number>/publish/",
        rubrics.publish_version,
        name="rubric_publish",
    ),
    path(
        "p/<slug:project>/rubrics/<slug:rubric>/v<int:number>/withdraw/",
        rubrics.withdraw_version,
        name="rubric_withdraw",
    ),
    path("desk/writing/<int:writing>/", writing.writing_view, name="desk_writing"),
    path("desk/writing/at/<uuid:writing_key>/", writing.writing_text_view, name="desk_writing_text"),
    path("desk/writing/at/<uuid:writing_key>/submit/", writing.writing_submit_view, name="desk_writing_submit"),
    path("desk/writing/at/<uuid:writing_key>/draft/", writing.writing_draft_view, name="desk_writing_draft"),
    path("desk/writing/at/<uuid:writing_key>/skip/", writing.writing_skip_view, name="desk_writing_skip"),
    path("p/<slug:project>/writing/", writing.writing_duties_page, name="writing_duties"),
    path("p/<slug:project>/writing/new/", writing.new_writing_duty, name="writing_duty_new"),
    path("p/<slug:project>/writing/<int:writing>/", writing.writing_duty_page, name="writing_duty"),
    path("p/<slug:project>/writing/<int:writing>/state/", writing.set_writing_state_view, name="writing_state"),
    path("p/<slug:project>/writing/<int:writing>/store/", writing.store_writing_view, name="writing_store"),
    path("p/<slug:project>/writing/<int:writing>/<int:human_text>/", writing.writing_read_page, name="writing_text"),
    path("p/<slug:project>/prompts/", prompts.prompt_collections_page, name="prompt_collections"),
    path("p/<slug:project>/prompts/new/", prompts.new_prompt_collection, name="prompt_collection_new"),
    path("p/<slug:project>/prompts/<int:collection>/", prompts.prompt_collection_page, name="prompt_collection"),
    path(
        "p/<slug:project>/prompts/<int:collection>/edit/", prompts.edit_prompt_collection, name="prompt_collection_edit"
    ),
    path("p/<slug:project>/prompts/<int:collection>/people/", prompts.set_prompt_member, name="prompt_member"),
    path(
        "p/<slug:project>/prompts/<int:collection>/state/", prompts.set_collection_state, name="prompt_collection_state"
    ),
    path("p/<slug:project>/prompts/<int:collection>/store/", prompts.store_prompts_view, name="prompt_store"),
    path("p/<slug:project>/prompts/<int:collection>/prompts.csv", prompts.prompts_csv_view, name="prompts_csv"),
    path("p/<slug:project>/prompts/<int:collection>/wanted.csv", prompts.slots_csv_view, name="prompt_slots_csv"),
    path("p/<slug:project>/prompts/<int:collection>/write/<int:slot>/", prompts.write_prompt, name="prompt_write"),
    path(
        "p/<slug:project>/prompts/<int:collection>/write/<int:slot>/draft/",
        prompts.keep_prompt_draft,
        name="prompt_draft",
    ),
    path(
        "p/<slug:project>/prompts/<int:collection>/<int:prompt>/release/",
        prompts.release_prompt_view,
        name="prompt_release",
    ),
    path("p/<slug:project>/prompts/<int:collection>/review/", prompts.next_review, name="prompt_review"),
    path("p/<slug:project>/prompts/<int:collection>/<int:prompt>/", prompts.prompt_page, name="prompt"),
    path(
        "p/<slug:project>/prompts/<int:collection>/<int:prompt>/draft/",
        prompts.keep_revision_draft,
        name="prompt_revision_draft",
    ),
    path(
        "p/<slug:project>/prompts/<int:collection>/<int:prompt>/review/",
        prompts.review_prompt_view,
        name="prompt_decide",
    ),
    path("p/<slug:project>/taxonomies/", taxonomies.taxonomies_page, name="taxonomies"),
    path("p/<slug:project>/taxonomies/new/", taxonomies.new_taxonomy, name="taxonomy_new"),
    path("p/<slug:project>/taxonomies/example/", taxonomies.example_taxonomy, name="taxonomy_example"),
    path("p/<slug:project>/taxonomies/<int:taxonomy>/", taxonomies.taxonomy_page, name="taxonomy"),
    path("p/<slug:project>/taxonomies/<int:taxonomy>.yaml", taxonomies.taxonomy_yaml, name="taxonomy_yaml"),
    path("p/<slug:project>/taxonomies/<int:taxonomy>/remove/", taxonomies.remove_taxonomy_view, name="taxonomy_remove"),
    path("p/<slug:project>/campaigns/", campaigns.campaigns_page, name="campaigns"),
    path("p/<slug:project>/campaigns/new/", campaigns.new_campaign, name="campaign_new"),
    path("p/<slug:project>/campaigns/compare-users/", user_comparisons.new_user_comparison, name="user_comparison_new"),
    path("p/<slug:project>/campaigns/<int:campaign>/", campaigns.campaign_page, name="campaign"),
    path("p/<slug:project>/campaigns/<int:campaign>/questions/", panels.questions_page, name="annotator_questions"),
    path(
        "p/<slug:project>/campaigns/<int:campaign>/questions/<int:question>/answer/",
        panels.answer_question,
        name="answer_question",
    ),
    path("p/<slug:project>/campaigns/<int:campaign>/state/", campaigns.move_campaign, name="campaign_move"),
    path("p/<slug:project>/campaigns/<int:campaign>/dataset/", campaigns.extend_campaign_view, name="campaign_extend"),
    path("p/<slug:project>/campaigns/<int:campaign>/hand-out/", campaigns.hand_out_view, name="campaign_hand_out"),
    path("p/<slug:project>/campaigns/<int:campaign>/duties/new/", campaigns.new_duty, name="duty_new"),
    path(
        "p/<slug:project>/campaigns/<int:campaign>/duties/by-rules/", taxonomies.duties_by_rules, name="duties_by_rules"
    ),
    path(
        "p/<slug:project>/campaigns/<int:campaign>/duties/<int:duty>/take-back/",
        campaigns.take_back_duty_view,
        name="duty_take_back",
    ),
    *(
        path(f"p/<slug:project>/campaigns/<int:campaign>/{below}", view, name=name)
        for below, view, name in (
            ("rubric/", rubrics.rubric_change_page, "rubric_change"),
            ("rubric/<int:change>/undo/", rubrics.undo_rubric_change, "rubric_change_undo"),
            ("duties/<int:duty>/", panels.duty_page, "duty"),
            ("duties/<int:duty>/annotators/", panels.add_annotators_view, "duty_annotators"),
            ("duties/<int:duty>/return/", panels.return_items_view, "duty_return"),
            ("questionnaire/", panels.questionnaire_page, "questionnaire"),
            ("questionnaire.csv", panels.questionnaire_csv, "questionnaire_csv"),
            ("qualification/", qualification.qualification_page, "qualification"),
            ("qualification/<int:duty>/<int:annotator>/", qualification.standing_page, "standing"),
            ("guidelines/new/", qualification.new_guideline, "guideline_new"),
            ("guidelines/<int:guideline>/", qualification.guideline_page, "guideline"),
            ("references/", qualification.references_page, "references"),
            ("references/edit/", qualification.reference_form, "reference_form"),
            ("references/<int:reference>/remove/", qualification.remove_reference_view, "reference_remove"),
        )
    ),
    path("p/<slug:project>/campaigns/<int:campaign>/skips/<int:skip>/", campaigns.resolve_skip_view, name="skip"),
    path("p/<slug:project>/campaigns/<int:campaign>/selections/new/", campaigns.new_selection, name="selection_new"),
    path("p/<slug:project>/selections/<int:selection>/", campaigns.selection_page, name="selection"),
    path(
        "p/<slug:project>/selections/<int:selection>/remove/", campaigns.remove_selection_view, name="selection_remove"
    ),
    path("p/<slug:project>/people/removal/", panels.removals_page, name="person_removals"),
    path("p/<slug:project>/people/removal/<int:annotator>/", panels.removal_page, name="person_removal"),
    path("p/<slug:project>/panels/", panels.panels_page, name="panels"),
    path("p/<slug:project>/panels/<int:panel>/", panels.panel_page, name="panel"),
    path("p/<slug:project>/panels/<int:panel>/seats/", panels.seat_member, name="panel_seat"),
    path("p/<slug:project>/panels/<int:panel>/seats/<int:seat>/remove/", panels.unseat_view, name="panel_unseat"),
]

# Also under `intakes/`, the name that version 1 of the API began with; the schema calls those addresses deprecated.
imports_api = [
    path("projects/<slug:project>/imports/", import_routes.Imports.as_view(), name="api_imports"),
    path("projects/<slug:project>/imports/<int:file_import>/", import_routes.ImportDetail.as_view(), name="api_import"),
    path(
        "projects/<slug:project>/imports/<int:file_import>/files/<int:file>/",
        import_routes.ImportFileContent.as_view(),
        name="api_import_file",
    ),
    path(
        "projects/<slug:project>/imports/<int:file_import>/preview/",
        import_routes.ImportPreview.as_view(),
        name="api_import_preview",
    ),
    path(
        "projects/<slug:project>/imports/<int:file_import>/check/",
        import_routes.ImportCheck.as_view(),
        name="api_import_check",
    ),
    path(
        "projects/<slug:project>/imports/<int:file_import>/also/",
        import_routes.ImportAlso.as_view(),
        name="api_import_also",
    ),
    path(
        "projects/<slug:project>/imports/<int:file_import>/apart/",
        import_routes.ImportApart.as_view(),
        name="api_import_apart",
    ),
    path(
        "projects/<slug:project>/imports/<int:file_import>/store/",
        import_routes.ImportStorage.as_view(),
        name="api_import_store",
    ),
    path(
        "projects/<slug:project>/imports/<int:file_import>/undo/",
        import_routes.ImportUndo.as_view(),
        name="api_import_undo",
    ),
]

api = [
    path("projects/<slug:project>/writing/", writing_routes.WritingDuties.as_view(), name="api_writing_duties"),
    path(
        "projects/<slug:project>/writing/<int:writing>/",
        writing_routes.WritingDutyDetail.as_view(),
        name="api_writing_duty",
    ),
    path(
        "projects/<slug:project>/writing/<int:writing>/state/",
        writing_routes.WritingDutyState.as_view(),
        name="api_writing_state",
    ),
    path(
        "projects/<slug:project>/writing/<int:writing>/store/",
        writing_routes.StoreWriting.as_view(),
        name="api_writing_store",
    ),
    path(
        "projects/<slug:project>/writing/<int:writing>/texts/",
        writing_routes.HumanTexts.as_view(),
        name="api_human_texts",
    ),
    path(
        "projects/<slug:project>/writing/<int:writing>/texts/<int:human_text>/decision/",
        writing_routes.DecideWriting.as_view(),
        name="api_writing_decision",
    ),
    path("projects/<slug:project>/desk/writing/", writing_routes.OwnWritingDuties.as_view(), name="api_desk_writing"),
    path(
        "projects/<slug:project>/desk/writing/<int:writing>/take/",
        writing_routes.TakePrompt.as_view(),
        name="api_desk_writing_take",
    ),
    path(
        "projects/<slug:project>/desk/writing/at/<uuid:writing_key>/",
        writing_routes.SubmitWriting.as_view(),
        name="api_desk_writing_submit",
    ),
    path("projects/<slug:project>/datasets/", content_routes.Datasets.as_view(), name="api_datasets"),
    path("projects/<slug:project>/datasets/<int:dataset>/", content_routes.DatasetDetail.as_view(), name="api_dataset"),
    path(
        "projects/<slug:project>/datasets/<int:dataset>/items/", content_routes.DatasetItems.as_view(), name="api_items"
    ),
    *imports_api,
    *(
        path(str(route.pattern).replace("/imports/", "/intakes/"), route.callback, name=f"former_{route.name}")
        for route in imports_api
    ),
    path("projects/<slug:project>/mappings/", import_routes.Mappings.as_view(), name="api_mappings"),
    path("projects/<slug:project>/mappings/<int:mapping>/", import_routes.MappingDetail.as_view(), name="api_mapping"),
    path("projects/<slug:project>/uploads/", upload_routes.Uploads.as_view(), name="api_uploads"),
    path("projects/<slug:project>/uploads/<uuid:upload>/", upload_routes.UploadDetail.as_view(), name="api_upload"),
    path(
        "projects/<slug:project>/datasets/<int:dataset>/checkup/",
        checkup_routes.DatasetCheckups.as_view(),
        name="api_checkup",
    ),
    path(
        "projects/<slug:project>/datasets/<int:dataset>/checkup/leave-out/",
        checkup_routes.LeftOutDatasets.as_view(),
        name="api_leave_out",
    ),
    path("projects/<slug:project>/rubrics/", content_routes.Rubrics.as_view(), name="api_rubrics"),
    path(
        "projects/<slug:project>/rubrics/<slug:rubric>/versions/",
        content_routes.RubricVersions.as_view(),
        name="api_rubric_versions",
    ),
    path(
        "projects/<slug:project>/rubrics/<slug:rubric>/versions/<int:number>/",
        content_routes.RubricVersionDetail.as_view(),
        name="api_rubric_version",
    ),
    path(
        "projects/<slug:project>/rubrics/<slug:rubric>/versions/<int:number>/publish/",
        content_routes.RubricPublication.as_view(),
        name="api_rubric_publish",
    ),
    path("projects/<slug:project>/campaigns/", campaign_routes.Campaigns.as_view(), name="api_campaigns"),
    path(
        "projects/<slug:project>/user-comparisons/",
        comparison_routes.UserComparisons.as_view(),
        name="api_user_comparisons",
    ),
    path(
        "projects/<slug:project>/user-comparisons/preview/",
        comparison_routes.UserComparisonPreview.as_view(),
        name="api_user_comparison_preview",
    ),
    path(
        "projects/<slug:project>/campaigns/<int:campaign>/",
        campaign_routes.CampaignDetail.as_view(),
        name="api_campaign",
    ),
    path(
        "projects/<slug:project>/campaigns/<int:campaign>/state/",
        campaign_routes.CampaignState.as_view(),
        name="api_campaign_state",
    ),
    path(
        "projects/<slug:project>/campaigns/<int:campaign>/dataset/",
        campaign_routes.CampaignDataset.as_view(),
        name="api_campaign_dataset",
    ),
    path(
        "projects/<slug:project>/campaigns/<int:campaign>/hand-out/",
        campaign_routes.HandOut.as_view(),
        name="api_campaign_hand_out",
    ),
    path(
        "projects/<slug:project>/campaigns/<int:campaign>/duties/",
        campaign_routes.Duties.as_view(),
        name="api_duties",
    ),
    path(
        "projects/<slug:project>/campaigns/<int:campaign>/duties/by-rules/",
        taxonomy_routes.DutiesByRules.as_view(),
        name="api_duties_by_rules",
    ),
    path(
        "projects/<slug:project>/prompt-collections/",
        prompt_routes.PromptCollections.as_view(),
        name="api_prompt_collections",
    ),
    path(
        "projects/<slug:project>/prompt-collections/<int:collection>/",
        prompt_routes.PromptCollectionDetail.as_view(),
        name="api_prompt_collection",
    ),
    path(
        "projects/<slug:project>/prompt-collections/<int:collection>/progress/",
        prompt_routes.PromptCollectionProgress.as_view(),
        name="api_prompt_progress",
    ),
    path(
        "projects/<slug:project>/prompt-collections/<int:collection>/slots/",
        prompt_routes.PromptCollectionSlots.as_view(),
        name="api_prompt_slots",
    ),
    path(
        "projects/<slug:project>/prompt-collections/<int:collection>/people/",
        prompt_routes.PromptCollectionMembers.as_view(),
        name="api_prompt_people",
    ),
    path(
        "projects/<slug:project>/prompt-collections/<int:collection>/state/",
        prompt_routes.PromptCollectionState.as_view(),
        name="api_prompt_state",
    ),
    path(
        "projects/<slug:project>/prompt-collections/<int:collection>/store/",
        prompt_routes.PromptDatasets.as_view(),
        name="api_prompt_store",
    ),
    path(
        "projects/<slug:project>/prompt-collections/<int:collection>/prompts/",
        prompt_routes.CollectedPrompts.as_view(),
        name="api_prompts",
    ),
    path(
        "projects/<slug:project>/prompt-collections/<int:collection>/check/",
        prompt_routes.PromptChecks.as_view(),
        name="api_prompt_check",
    ),
    path(
        "projects/<slug:project>/prompt-collections/<int:collection>/prompts/<int:prompt>/review/",
        prompt_routes.PromptReviews.as_view(),
        name="api_prompt_review",
    ),
    path("projects/<slug:project>/taxonomies/", taxonomy_routes.Taxonomies.as_view(), name="api_taxonomies"),
    path(
        "projects/<slug:project>/taxonomies/<int:taxonomy>/",
        taxonomy_routes.TaxonomyDetail.as_view(),
        name="api_taxonomy",
    ),
    path(
        "projects/<slug:project>/campaigns/<int:campaign>/progress/",
        campaign_routes.CampaignProgress.as_view(),
        name="api_campaign_progress",
    ),
    *(
        path(f"projects/<slug:project>/campaigns/<int:campaign>/{below}", view.as_view(), name=name)
        for below, view, name in (
            ("rubric-changes/", rubric_routes.RubricChanges, "api_rubric_changes"),
            ("rubric-changes/<int:change>/undo/", rubric_routes.RubricChangeUndo, "api_rubric_change_undo"),
            ("duties/<int:duty>/", duty_routes.DutyDetail, "api_duty"),
            ("duties/<int:duty>/annotators/", duty_routes.DutyAnnotators, "api_duty_annotators"),
            ("duties/<int:duty>/return/", duty_routes.DutyReturn, "api_duty_return"),
            ("questionnaire/", duty_routes.ClosingQuestionnaire, "api_questionnaire"),
            ("qualification/", qualification_routes.Qualification, "api_qualification"),
            ("guidelines/", qualification_routes.Guidelines, "api_guidelines"),
            ("references/", qualification_routes.References, "api_references"),
            ("references/<int:reference>/", qualification_routes.ReferenceDetail, "api_reference"),
            ("standings/", qualification_routes.Standings, "api_standings"),
            ("standings/<int:duty>/<int:annotator>/mismatches/", qualification_routes.Mismatches, "api_mismatches"),
            ("standings/<int:duty>/<int:annotator>/reinstate/", qualification_routes.Reinstatement, "api_reinstate"),
        )
    ),
    path(
        "projects/<slug:project>/campaigns/<int:campaign>/selections/",
        campaign_routes.Selections.as_view(),
        name="api_selections",
    ),
    path(
        "projects/<slug:project>/selections/<int:selection>/",
        campaign_routes.SelectionDetail.as_view(),
        name="api_selection",
    ),
    path(
        "projects/<slug:project>/selections/<int:selection>/items/",
        campaign_routes.SelectionItems.as_view(),
        name="api_selection_items",
    ),
    path("projects/<slug:project>/people/", campaign_routes.People.as_view(), name="api_people"),
    path(
        "projects/<slug:project>/people/<int:annotator>/removal/",
        campaign_routes.PersonRemoval.as_view(),
        name="api_person_removal",
    ),
    path("projects/<slug:project>/panels/", campaign_routes.Panels.as_view(), name="api_panels"),
    path("projects/<slug:project>/panels/<int:panel>/seats/", campaign_routes.Seats.as_view(), name="api_seats"),
    path(
        "projects/<slug:project>/panels/<int:panel>/seats/<int:seat>/", campaign_routes.Seat.as_view(), name="api_seat"
    ),
    *desk.api,
]
