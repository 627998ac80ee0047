"""The plain methods of the Python client, written from the API's schema by `manage.py client_types`.

A plain method sends what it is given to one operation and returns the answer. `METHODS` names it and says what it is
for; its address, parameters and types come from the schema. Methods that do more (files, waiting, keys of their own)
are written by hand in `panelbench_client`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from textwrap import fill
from typing import Any, NamedTuple

PREFIX = "/api/v1"
WIDTH = 120
WORD = re.compile(r'"[^"]*"|\b\w+\b')
Typed = Callable[[Mapping[str, Any]], str]
IN_PROJECT = "/projects/{project}/"
PATH_PART = re.compile(r"{(\w+)}")
HEAD = '''"""The plain methods of the client, written by `manage.py client_types` from the API's schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, cast
from urllib.parse import quote

from panelbench_client import types
from panelbench_client.connection import ServerConnection, given, operation


class PlainMethods(ServerConnection):
'''


class Method(NamedTuple):
    """A method's name and docstring; `repeatable`: a POST that may be sent twice, so that the client retries it."""

    name: str
    doc: str
    repeatable: bool = False


class Parameter(NamedTuple):
    name: str
    kind: str
    is_required: bool


def rendered_methods(schema: Mapping[str, Any], python: Callable[[Mapping[str, Any]], str]) -> str:
    """The module's source; `python` gives the Python type of a part of the schema."""
    names = {*schema["components"]["schemas"], "Moment", "Decimal", "Json"}

    def typed(part: Mapping[str, Any]) -> str:
        return WORD.sub(lambda found: f"types.{found[0]}" if found[0] in names else found[0], python(part))

    return HEAD + "\n".join(_rendered(key, method, schema, typed) for key, method in METHODS.items())


def _rendered(key: str, method: Method, schema: Mapping[str, Any], typed: Typed) -> str:
    verb, path = key.split()
    operation = schema["paths"][PREFIX + path][verb.lower()]
    in_path, query = _in_path(operation, path, typed), _query(operation, typed)
    body, (answer, is_paged) = _body(operation, schema, typed), _answer(operation, typed)

    required = [each for each in (*in_path, *query, *body) if each.is_required]
    optional = [each for each in (*query, *body) if not each.is_required]
    signature = ["self", *(f"{each.name}: {each.kind}" for each in required), *(["*"] if optional else [])]
    signature += [f"{each.name}: {_with_none(each.kind)} = None" for each in optional]
    lines = [f'    @operation("{verb}", "{path}")']
    lines += _call(f"    def {method.name}(", signature, f") -> {answer}:")
    doc = f'        """{method.doc}"""'
    lines += [doc] if len(doc) <= WIDTH else [fill(doc, WIDTH, subsequent_indent=" " * 8)]

    options = [_address(path)] if is_paged else [f'"{verb}"', _address(path)]
    if is_paged:
        options += [f"{each.name}={each.name}" for each in query]
    for name, parameters in () if is_paged else (("params", query), ("json", body)):
        if parameters:
            lines += _fields(name, parameters)
            options.append(f"{name}={'sent' if name == 'json' else 'asked'}")
    options += ["repeatable=True"] if method.repeatable else []
    if answer == "None":
        return "\n".join([*lines, *_call("        self.send(", options, ")"), ""])
    if is_paged:
        return "\n".join([*lines, *_call("        return self.pages(", options, ")"), ""])
    whole = f"        return cast({answer}, self.json({', '.join(options)}))"
    if len(whole) > WIDTH:
        lines.append(f"        address = {options[1]}")
        whole = f"        return cast({answer}, self.json({', '.join([options[0], 'address', *options[2:]])}))"
    return "\n".join([*lines, whole, ""])


def _call(opening: str, parts: Sequence[str], closing: str) -> list[str]:
    """Code on one line, or with every part on its own where it is too long."""
    line = f"{opening}{', '.join(parts)}{closing}"
    if len(line) <= WIDTH:
        return [line]
    indent = " " * (len(opening) - len(opening.lstrip()))
    return [
        opening,
        *(f"{indent}    {part}," if part != "*" else f"{indent}    *," for part in parts),
        indent + closing,
    ]


def _address(path: str) -> str:
    inside = path.removeprefix(IN_PROJECT) if path.startswith(IN_PROJECT) else None
    names = PATH_PART.findall(path if inside is None else inside)
    if inside is not None:
        shape = PATH_PART.sub("{}", inside)
        return f"self.at({', '.join([repr(shape), *names])})".replace("'", '"')
    if not names:
        return f'"{path}"'
    return 'f"' + PATH_PART.sub(lambda found: "{quote(str(" + found[1] + "), safe='')}", path) + '"'


def _fields(name: str, parameters: Sequence[Parameter]) -> list[str]:
    """The assignment of what a request carries: the fields that are required, and those that were given."""
    variable = "sent" if name == "json" else "asked"
    required = [f'"{each.name}": {each.name}' for each in parameters if each.is_required]
    optional = [f"{each.name}={each.name}" for each in parameters if not each.is_required]
    if not required:
        return _call(f"        {variable} = given(", optional, ")")
    lines = _call(f"        {variable}: dict[str, Any] = {{", required, "}")
    return lines + (_call(f"        {variable} |= given(", optional, ")") if optional else [])


def _in_path(operation: Mapping[str, Any], path: str, typed: Typed) -> list[Parameter]:
    kinds = {each["name"]: typed(each["schema"]) for each in operation.get("parameters", ()) if each["in"] == "path"}
    return [Parameter(name, kinds[name], True) for name in PATH_PART.findall(path) if name != "project"]


def _query(operation: Mapping[str, Any], typed: Typed) -> list[Parameter]:
    return [
        Parameter(each["name"], _accepted(typed(each["schema"])), each.get("required", False))
        for each in operation.get("parameters", ())
        if each["in"] == "query" and each["name"] not in ("cursor", "limit")
    ]


def _body(operation: Mapping[str, Any], schema: Mapping[str, Any], typed: Typed) -> list[Parameter]:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if not content:
        return []
    part = content["schema"]
    if "$ref" in part:
        part = schema["components"]["schemas"][part["$ref"].rpartition("/")[2]]
    required = part.get("required", ())
    fields = sorted(part.get("properties", {}).items(), key=lambda field: field[0] != "name")
    return [
        Parameter(name, _accepted(typed(field)), name in required)
        for name, field in fields
        if not field.get("readOnly")
    ]


def _answer(operation: Mapping[str, Any], typed: Typed) -> tuple[str, bool]:
    """The type of an operation's answer, and whether it comes in pages."""
    kinds = []
    for status, answer in operation["responses"].items():
        if status.startswith("2"):
            content = answer.get("content", {}).get("application/json")
            kinds.append(typed(content["schema"]) if content else "None")
    kind = " | ".join(dict.fromkeys(kinds))
    if paged := re.fullmatch(r"types\.Paginated(\w+)List", kind):
        return f"Iterator[types.{paged[1]}]", True
    return kind, False


def _accepted(kind: str) -> str:
    """What a parameter of this type accepts: any sequence for a list, any mapping for a dict."""
    return re.sub(r"\bdict\[", "Mapping[", re.sub(r"\blist\[", "Sequence[", kind))


def _with_none(kind: str) -> str:
    return kind if kind.endswith("| None") else f"{kind} | None"


METHODS: Mapping[str, Method] = {
    "GET /me/": Method("me", "The owner of the token, and their role in every project."),
    "GET /projects/": Method("projects", "The projects of the token's owner."),
    "POST /projects/": Method(
        "found_project", "Create a project and become its lead; ``slug`` is part of its address."
    ),
    "GET /projects/{project}/": Method("describe", "This client's project."),
    "DELETE /projects/{project}/": Method(
        "delete_project",
        "Delete this client's project; ``name`` is its name, to confirm. For 30 days ``restore_project`` undoes it.",
    ),
    "POST /projects/{project}/restore/": Method(
        "restore_project", "Restore this client's deleted project; for those who led it."
    ),
    "GET /projects/{project}/members/": Method("members", "The members of the project; for its leads."),
    "GET /projects/{project}/invitations/": Method("invitations", "The open invitations; for leads."),
    "POST /projects/{project}/invitations/": Method(
        "invite",
        'Invite many people at once: ``people`` are ``{"email": ..., "panels": [...], "languages": [...]}``. '
        "The links are answered once; members and duplicates are named and not invited.",
    ),
    "GET /projects/{project}/datasets/": Method("datasets", "Every version of every dataset."),
    "GET /projects/{project}/datasets/{dataset}/": Method("dataset", "One version of a dataset."),
    "GET /projects/{project}/datasets/{dataset}/items/": Method(
        "items", "The items in order, texts unchanged; ``q`` is a text that they contain."
    ),
    "GET /projects/{project}/datasets/{dataset}/checkup/": Method(
        "dataset_checkup",
        "What the newest check-up of a dataset found, by check, with the items; `checked_at` is None without one.",
    ),
    "POST /projects/{project}/datasets/{dataset}/checkup/": Method(
        "check_dataset", "Let a worker check a dataset; look at `is_under_way` of `dataset_checkup`."
    ),
    "POST /projects/{project}/datasets/{dataset}/checkup/leave-out/": Method(
        "leave_out",
        "Make a dataset without the items in which these checks found something; ``families``: without the other "
        "items of their scenarios, too. Nothing of this dataset changes.",
    ),
    "GET /projects/{project}/rubrics/": Method("rubrics", "The rubrics by key."),
    "GET /projects/{project}/rubrics/{rubric}/versions/": Method("rubric_versions", "The versions of one rubric."),
    "GET /projects/{project}/rubrics/{rubric}/versions/{number}/": Method(
        "rubric_version", "One version with its document."
    ),
    "POST /projects/{project}/rubrics/{rubric}/versions/{number}/publish/": Method(
        "publish_rubric", "Publish a draft. A published version can't be changed."
    ),
    "GET /projects/{project}/campaigns/": Method("campaigns", "The project's campaigns."),
    "POST /projects/{project}/campaigns/": Method(
        "open_campaign", "Open a campaign for a dataset and a published rubric version (their ``id``)."
    ),
    "GET /projects/{project}/campaigns/{campaign}/": Method("campaign", "One campaign."),
    "POST /projects/{project}/campaigns/{campaign}/state/": Method(
        "move_campaign", "Pause a campaign, open it again, or close it permanently."
    ),
    "GET /projects/{project}/campaigns/{campaign}/progress/": Method(
        "progress", "The progress of every duty and of every annotator in it, by pseudonym."
    ),
    "POST /projects/{project}/campaigns/{campaign}/dataset/": Method(
        "extend_campaign", "Continue with a later version of the dataset. All ratings are kept."
    ),
    "POST /projects/{project}/campaigns/{campaign}/hand-out/": Method(
        "hand_out", "Assign the items that a later version of the dataset added."
    ),
    "GET /projects/{project}/campaigns/{campaign}/selections/": Method(
        "selections", "The selections of a campaign's items."
    ),
    "POST /projects/{project}/campaigns/{campaign}/selections/": Method(
        "select_items", 'Draw a selection, such as ``{"kind": "draw", "n": 20, "by": ["language", "generator"]}``.'
    ),
    "GET /projects/{project}/selections/{selection}/": Method("selection", "One selection with its strata."),
    "DELETE /projects/{project}/selections/{selection}/": Method(
        "remove_selection", "Remove a selection that no run and no duty uses."
    ),
    "GET /projects/{project}/selections/{selection}/items/": Method(
        "selected_items", "The items of a selection, each with its probability and stratum."
    ),
    "GET /projects/{project}/panels/": Method("panels", "The project's panels."),
    "POST /projects/{project}/panels/": Method(
        "make_panel", "Create a panel, usually of native speakers of one language."
    ),
    "GET /projects/{project}/panels/{panel}/seats/": Method("seats", "The annotators of a panel, by pseudonym."),
    "POST /projects/{project}/panels/{panel}/seats/": Method("seat", "Add a member to a panel, by user id; for leads."),
    "DELETE /projects/{project}/panels/{panel}/seats/{seat}/": Method(
        "unseat", "Remove an annotator from a panel; their ratings are kept. For leads."
    ),
    "GET /projects/{project}/campaigns/{campaign}/duties/": Method("duties", "The duties of a campaign."),
    "POST /projects/{project}/campaigns/{campaign}/duties/": Method(
        "add_duty",
        "Create a duty for a panel: ``overlap`` annotators per item, on some or all criteria, and on all "
        "items or those of a ``selection``.",
    ),
    "GET /projects/{project}/desk/": Method("desk", "The duties of the token's owner."),
    "POST /projects/{project}/desk/{duty}/take/": Method(
        "take", "The item that the owner has leased, else the next free item; None if no item is left.", repeatable=True
    ),
    "POST /projects/{project}/desk/at/{key}/": Method(
        "submit", "Submit an item. The same key again returns the stored annotation.", repeatable=True
    ),
    "GET /providers/": Method(
        "providers", "The names and models of the providers of the server; for leads and researchers."
    ),
    "POST /providers/": Method(
        "add_provider",
        "Declare an endpoint. ``key_variable`` names the environment variable with its key.",
    ),
    "GET /providers/{provider}/": Method("provider", "One provider with its address, prices and limits."),
    "PATCH /providers/{provider}/": Method(
        "change_provider", "Change settings of a provider. Runs that were started before keep their prices."
    ),
    "DELETE /providers/{provider}/": Method("remove_provider", "Remove a provider that no run asks now."),
    "POST /providers/{provider}/tests/": Method(
        "test_provider", "Let a worker make one call; ``provider_tests`` has the result."
    ),
    "GET /providers/{provider}/tests/": Method("provider_tests", "The newest tests of a provider, at most five."),
    "GET /projects/{project}/generation/specs/": Method("generation_specs", "The specs that are ready to use."),
    "GET /projects/{project}/generation/": Method("generation_plans", "The project's generation plans, newest first."),
    "POST /projects/{project}/generation/": Method("create_generation_plan", "Plan texts; nothing is sent yet."),
    "GET /projects/{project}/generation/{plan}/": Method("generation_plan", "One generation plan and how far it is."),
    "GET /projects/{project}/generation/{plan}/forecast/": Method(
        "generation_forecast", "What the texts that are still to be written take."
    ),
    "POST /projects/{project}/generation/{plan}/examples/": Method(
        "write_examples", "Have the first three families written."
    ),
    "POST /projects/{project}/generation/{plan}/start/": Method("start_generation", "Have all families written."),
    "POST /projects/{project}/generation/{plan}/pause/": Method("pause_generation", "Send no more requests of a plan."),
    "POST /projects/{project}/generation/{plan}/resume/": Method("resume_generation", "Continue a paused plan."),
    "POST /projects/{project}/generation/{plan}/cancel/": Method(
        "cancel_generation", "End a plan permanently; what is written is kept."
    ),
    "POST /projects/{project}/generation/{plan}/again/": Method(
        "ask_for_texts_again", "Ask again for the texts that were given up."
    ),
    "PUT /projects/{project}/generation/{plan}/budget/": Method(
        "set_generation_budget", "Change or lift the budget of a plan."
    ),
    "POST /projects/{project}/generation/{plan}/store/": Method(
        "store_generated", "Store the written texts as a dataset."
    ),
    "POST /projects/{project}/generation/{plan}/utterances/": Method(
        "store_utterances", "Store the judged turns of a simulation's users as a dataset, for native speakers."
    ),
    "GET /projects/{project}/generation/{plan}/texts/": Method(
        "generated_texts", "The texts of a plan, family by family."
    ),
    "GET /projects/{project}/generation/{plan}/texts/{text}/": Method(
        "generated_text", "One text with every request that was paid for it."
    ),
    "PUT /projects/{project}/generation/{plan}/texts/{text}/decision/": Method(
        "decide_on_text", "Keep a text, set it aside, or take that back."
    ),
    "GET /projects/{project}/judges/": Method("judges", "The project's judges, run here or imported."),
    "POST /projects/{project}/judges/": Method(
        "declare_judge",
        "Add a judge; the same configuration again returns the existing judge. ``timeout`` (seconds "
        "for a reply), ``tries`` (of a call) and ``concurrency`` (calls in flight) change no verdict: for"
        " an existing judge they replace the old values.",
        repeatable=True,
    ),
    "GET /projects/{project}/judges/studies/": Method("judge_studies", "The ready configurations of the five studies."),
    "POST /projects/{project}/judges/studies/": Method(
        "declare_as_study",
        'Add a judge as a study had it, such as ``"s3"``; its rubric is published in the project.',
        repeatable=True,
    ),
    "GET /projects/{project}/judges/{judge}/": Method("judge", "One judge."),
    "GET /projects/{project}/spending/": Method(
        "spending", "What requests to models have cost, by day, person and kind; of one ``judge`` where it is given."
    ),
    "GET /projects/{project}/judges/{judge}/preview/": Method(
        "prompts", "The exact messages that this judge would send for one item."
    ),
    "GET /projects/{project}/writing/": Method("writing_duties", "The project's duties to write."),
    "POST /projects/{project}/writing/": Method(
        "open_writing_duty", "Have a panel write answers, or the turns of one role, for the prompts of a dataset."
    ),
    "GET /projects/{project}/writing/{writing}/": Method("writing_duty", "One duty to write, and how far it is."),
    "PUT /projects/{project}/writing/{writing}/state/": Method(
        "set_writing_state", "Open, pause or close a duty to write.", repeatable=True
    ),
    "POST /projects/{project}/writing/{writing}/store/": Method(
        "store_writing", "Store accepted texts of people as items, among the models' texts or as a dataset of a name."
    ),
    "GET /projects/{project}/writing/{writing}/texts/": Method("human_texts", "The texts of a duty to write."),
    "PUT /projects/{project}/writing/{writing}/texts/{human_text}/decision/": Method(
        "decide_writing", "Accept a text of a person, or send it back with a comment.", repeatable=True
    ),
    "GET /projects/{project}/desk/writing/": Method("own_writing_duties", "Your duties to write."),
    "POST /projects/{project}/desk/writing/{writing}/take/": Method(
        "take_prompt", "The prompt that you are writing for, else the next one.", repeatable=True
    ),
    "POST /projects/{project}/desk/writing/at/{writing_key}/": Method(
        "submit_writing", "Submit a text; the same key and texts again are stored once.", repeatable=True
    ),
    "GET /projects/{project}/runs/": Method("runs", "The project's runs."),
    "POST /projects/{project}/runs/forecast/": Method(
        "forecast_run",
        "The number of calls, and estimates of tokens and USD, of a run that is not started.",
        repeatable=True,
    ),
    "GET /projects/{project}/runs/{run}/": Method("run", "One run with its progress."),
    "POST /projects/{project}/runs/{run}/pause/": Method(
        "pause_run", "Send no more calls; replies to calls in flight are still stored."
    ),
    "POST /projects/{project}/runs/{run}/resume/": Method("resume_run", "Resume a paused run."),
    "POST /projects/{project}/runs/{run}/cancel/": Method(
        "cancel_run", "End a run permanently; stored verdicts are kept."
    ),
    "POST /projects/{project}/runs/{run}/rerun/": Method(
        "rerun",
        "Repeat the calls that failed, or whose verdicts have one of these ``statuses``; every new "
        "request is paid. Statuses: failed, unparsed, out_of_range, refused, truncated, error. Scores "
        "that were read stay.",
    ),
    "POST /projects/{project}/runs/{run}/rerun-failed/": Method("rerun_failed", "Send the failed calls again."),
    "PUT /projects/{project}/runs/{run}/budget/": Method("set_budget", "Raise, lower or lift the cap in USD."),
    "GET /projects/{project}/curations/": Method("curations", "The project's curated datasets, newest first."),
    "POST /projects/{project}/curations/": Method(
        "curate",
        "Choose ``n`` items per language out of a dataset and store them as a new one called ``name``; "
        "docs/curation.md explains the other parts.",
    ),
    "POST /projects/{project}/curations/preview/": Method(
        "preview_curation", "The certificate that a curated dataset would have; stores nothing.", repeatable=True
    ),
    "GET /projects/{project}/curations/{curation}/": Method(
        "curation", "One curated dataset: what was asked for, its certificate, and what may not be concluded."
    ),
    "GET /projects/{project}/curations/{curation}/items/": Method(
        "curated_items", "The items of a curated dataset, each with its inclusion probability if it has one."
    ),
    "GET /projects/{project}/judges/{judge}/errors/": Method(
        "judge_errors", "Why verdicts of a judge are wrong: the reasons that people wrote, with their counts."
    ),
    "GET /projects/{project}/error-tags/": Method(
        "error_tags", "The reasons that people wrote for wrong verdicts, newest first."
    ),
    "POST /projects/{project}/error-tags/": Method(
        "tag_error", "Write why a verdict is wrong; the same reason again changes nothing.", repeatable=True
    ),
    "DELETE /projects/{project}/error-tags/{tag}/": Method("remove_error_tag", "Take a reason from its verdict."),
    "POST /projects/{project}/user-comparisons/": Method(
        "compare_users",
        "Mix dialogues with simulated users and with people into one dataset, and open a campaign on it in which "
        "annotators say who is a person; docs/simulation.md explains it.",
    ),
    "POST /projects/{project}/user-comparisons/preview/": Method(
        "preview_user_comparison", "How many dialogues a comparison would have; stores nothing.", repeatable=True
    ),
    "GET /projects/{project}/designs/": Method("designs", "The project's designs, newest first."),
    "POST /projects/{project}/designs/": Method(
        "make_design",
        "Make a design of these judges at every combination of levels; nothing is sent. ``factors``: "
        '``{"anchor_detail": ["name", "reasons"], "temperature": [0, 0.7]}``. ``budget`` caps all runs.',
    ),
    "GET /projects/{project}/designs/{design}/": Method(
        "design", "One design with its progress and a row for each cell."
    ),
    "GET /projects/{project}/designs/{design}/forecast/": Method(
        "forecast_design", "Calls, tokens and USD of all runs; with an interval once a pilot has replies."
    ),
    "POST /projects/{project}/designs/{design}/pilot/": Method(
        "start_pilot", "Ask twenty calls beforehand; the design's runs use their replies."
    ),
    "POST /projects/{project}/designs/{design}/start/": Method(
        "start_design", "Start a run for every cell. Started again, it is the same runs.", repeatable=True
    ),
    "POST /projects/{project}/designs/{design}/pause/": Method(
        "pause_design", "Send nothing more; calls in flight come in."
    ),
    "POST /projects/{project}/designs/{design}/resume/": Method("resume_design", "Go on with the paused runs."),
    "POST /projects/{project}/designs/{design}/cancel/": Method(
        "cancel_design", "End the runs permanently; stored verdicts are kept."
    ),
    "PUT /projects/{project}/designs/{design}/budget/": Method(
        "set_design_budget",
        "Raise, lower or lift the cap over all runs; runs that paused for money have to be resumed besides.",
    ),
    "GET /projects/{project}/runs/{run}/calls/": Method("calls", "A run's calls."),
    "GET /projects/{project}/runs/{run}/calls/{call}/": Method(
        "call", "One call with all its attempts: the messages sent and the replies received."
    ),
    "GET /projects/{project}/verdicts/": Method("verdicts", "Verdicts: scores, or the reason why there is none."),
    "GET /projects/{project}/jobs/": Method(
        "jobs",
        "The waiting and running jobs of the project, and those that failed or were cancelled in the last seven days.",
    ),
    "POST /projects/{project}/jobs/{job}/cancel/": Method(
        "cancel_job", "Cancel a job: one's own, or as a lead any of the project. What it has stored so far is deleted."
    ),
    "GET /projects/{project}/webhooks/": Method("webhooks", "The project's webhooks."),
    "POST /projects/{project}/webhooks/": Method(
        "add_webhook", "Send events to an address. Only this response contains the secret for checking signatures."
    ),
    "GET /projects/{project}/webhooks/{webhook}/": Method("webhook", "One webhook."),
    "PATCH /projects/{project}/webhooks/{webhook}/": Method(
        "change_webhook", "Change the events of a webhook, or turn it off or on."
    ),
    "DELETE /projects/{project}/webhooks/{webhook}/": Method("remove_webhook", "Delete a webhook and its deliveries."),
    "POST /projects/{project}/webhooks/{webhook}/secret/": Method(
        "renew_secret", "Replace the secret; the old one is no longer used."
    ),
    "POST /projects/{project}/webhooks/{webhook}/test/": Method(
        "test_webhook", "Send a test; the deliveries show its result."
    ),
    "GET /projects/{project}/webhooks/{webhook}/deliveries/": Method(
        "deliveries", "The deliveries of the last thirty days, sent and waiting."
    ),
    "POST /projects/{project}/webhooks/{webhook}/deliveries/{delivery}/again/": Method(
        "send_again", "Send a delivery again, with the same id."
    ),
    "GET /projects/{project}/shares/": Method("shares", "The valid share links."),
    "POST /projects/{project}/shares/": Method(
        "share",
        "Create a link to one campaign's numbers, without how items were made unless it "
        "``shows_generators``. Only this response contains its address.",
    ),
    "DELETE /projects/{project}/shares/{link}/": Method("revoke_share", "Revoke a link: it stops working immediately."),
    "GET /projects/{project}/campaigns/{campaign}/duties/{duty}/": Method(
        "duty_settings", "Priority, deadline, quota and pause of a duty."
    ),
    "PUT /projects/{project}/campaigns/{campaign}/duties/{duty}/": Method(
        "change_duty", "Set all of them; ``due_at`` by ISO 8601. People with items left are reminded two days before."
    ),
    "POST /projects/{project}/campaigns/{campaign}/duties/{duty}/return/": Method(
        "return_items", "Return the items that these annotators (pseudonyms) have in progress to the queue."
    ),
    "GET /projects/{project}/people/": Method(
        "people", "The people whose data the project has, by pseudonym; for leads."
    ),
    "POST /projects/{project}/people/{annotator}/removal/": Method(
        "remove_person",
        "Remove a person's data; ``typed`` is their pseudonym, as a confirmation. It can't be undone. For leads.",
    ),
    "GET /projects/{project}/campaigns/{campaign}/questionnaire/": Method(
        "closing_questionnaire", "What annotators found hard, in groups of five people or more; for leads."
    ),
    "PUT /projects/{project}/campaigns/{campaign}/questionnaire/": Method(
        "switch_questionnaire",
        "Ask annotators the closing questions when they have finished, or no longer; answers are kept.",
    ),
    "GET /projects/{project}/campaigns/{campaign}/rubric-changes/": Method(
        "rubric_differences",
        "What differs between the campaign's version of the rubric and another one, with the ratings it touches.",
    ),
    "POST /projects/{project}/campaigns/{campaign}/rubric-changes/": Method(
        "change_rubric",
        'Use a newer version, such as ``{"fluency": {"decision": "map", "scores": {"1": 2}}}``; for '
        "leads. ``qualify_again``: training and exam count only from now on. A large campaign is changed "
        "by a worker: its `finished_at` is None until then, and `job` is the job to look at.",
    ),
    "POST /projects/{project}/campaigns/{campaign}/rubric-changes/{change}/undo/": Method(
        "undo_rubric_change",
        "Go back to the former version, as long as nothing was rated under the new one; for leads.",
    ),
    "GET /projects/{project}/campaigns/{campaign}/qualification/": Method(
        "qualification", "What a campaign asks of its annotators. Raises `NotFound` where nothing was set."
    ),
    "PUT /projects/{project}/campaigns/{campaign}/qualification/": Method(
        "set_qualification",
        "Set what a campaign asks of its annotators: ``exam_items=10, threshold=0.7, control_rate=0.1`` and so on.",
    ),
    "GET /projects/{project}/campaigns/{campaign}/guidelines/": Method(
        "guidelines", "Every version of a campaign's guidelines, by language, newest first."
    ),
    "POST /projects/{project}/campaigns/{campaign}/guidelines/": Method(
        "publish_guideline", "Publish the next version in a language; annotators confirm it before their next item."
    ),
    "GET /projects/{project}/campaigns/{campaign}/references/": Method(
        "references", "The reference items of a campaign with their scores."
    ),
    "POST /projects/{project}/campaigns/{campaign}/references/": Method(
        "mark_references",
        'Mark items for training, exams or controls: ``[{"item": "d1", "purpose": "exam", "scores": [...]}]``.',
    ),
    "DELETE /projects/{project}/campaigns/{campaign}/references/{reference}/": Method(
        "remove_reference", "Unmark an item that nobody has answered."
    ),
    "GET /projects/{project}/campaigns/{campaign}/standings/": Method(
        "standings", "How every annotator stands in every duty, by pseudonym."
    ),
    "GET /projects/{project}/campaigns/{campaign}/standings/{duty}/{annotator}/mismatches/": Method(
        "mismatches", "An annotator's answers to exams and controls that differ from their references, newest first."
    ),
    "POST /projects/{project}/campaigns/{campaign}/standings/{duty}/{annotator}/mismatches/": Method(
        "decide_mismatch", "Accept a score that differs from its reference, or not; leads only."
    ),
    "POST /projects/{project}/campaigns/{campaign}/standings/{duty}/{annotator}/reinstate/": Method(
        "reinstate", "Let a paused annotator work again; leads only."
    ),
    "GET /projects/{project}/prompt-collections/": Method("prompt_collections", "The prompt collections that you see."),
    "POST /projects/{project}/prompt-collections/": Method("create_prompt_collection", "Make a prompt collection."),
    "GET /projects/{project}/prompt-collections/{collection}/": Method(
        "prompt_collection", "One collection with its kinds of prompts and their counts."
    ),
    "PUT /projects/{project}/prompt-collections/{collection}/": Method(
        "change_prompt_collection", "Change name, guidelines and deadline."
    ),
    "GET /projects/{project}/prompt-collections/{collection}/progress/": Method(
        "prompt_progress", "Totals and people's counts of a collection."
    ),
    "PUT /projects/{project}/prompt-collections/{collection}/slots/": Method(
        "set_prompt_slots", "Add kinds of prompts, or change how many are wanted."
    ),
    "PUT /projects/{project}/prompt-collections/{collection}/people/": Method(
        "set_prompt_member", "Let a member of the project write, review, or both."
    ),
    "POST /projects/{project}/prompt-collections/{collection}/state/": Method(
        "set_prompt_collection_state", "Close a collection, or open it again."
    ),
    "POST /projects/{project}/prompt-collections/{collection}/store/": Method(
        "store_prompts", "Store the accepted prompts as a dataset."
    ),
    "GET /projects/{project}/prompt-collections/{collection}/prompts/": Method(
        "collected_prompts", "Submitted prompts with their versions and reviews."
    ),
    "POST /projects/{project}/prompt-collections/{collection}/prompts/": Method(
        "submit_prompt", "Submit a prompt, or the next version of one that was sent back."
    ),
    "POST /projects/{project}/prompt-collections/{collection}/check/": Method(
        "check_prompt", "Similar prompts, and whether the language looks right; nothing is stored."
    ),
    "POST /projects/{project}/prompt-collections/{collection}/prompts/{prompt}/review/": Method(
        "review_prompt", "Accept a prompt, send it back, or reject it."
    ),
    "POST /projects/{project}/datasets/{dataset}/answers/": Method(
        "plan_answers", "Plan an answer of each model to each prompt of a dataset; nothing is sent yet."
    ),
    "GET /projects/{project}/taxonomies/": Method("taxonomies", "Every version of the project's taxonomies."),
    "POST /projects/{project}/taxonomies/": Method(
        "store_taxonomy", "Store a taxonomy, the text of its file; an equal newest version is returned as it is."
    ),
    "GET /projects/{project}/taxonomies/{taxonomy}/": Method("taxonomy", "One version with its document as YAML."),
    "DELETE /projects/{project}/taxonomies/{taxonomy}/": Method(
        "remove_taxonomy", "Remove a version whose rules made no duty."
    ),
    "POST /projects/{project}/campaigns/{campaign}/duties/by-rules/": Method(
        "add_duties_by_rules",
        "Create the duties that the rules ask for, or add what they lack; ``preview`` only counts. "
        "``panels``: by name in the rules, the ids of the panels that rate; by default those that are "
        "called so.",
    ),
    "GET /projects/{project}/campaigns/{campaign}/adjudication/": Method(
        "adjudication_queue",
        "The items on which raters differ, those that differ most first; without those that you have "
        "rated. ``order`` is range, entropy, na, critical or judge; ``state`` is open, stale, decided or "
        "all.",
    ),
    "GET /projects/{project}/campaigns/{campaign}/items/{item}/adjudications/": Method(
        "item_adjudications",
        "The rated criteria of an item (by ``id``) with their ratings, names hidden, and what was decided.",
    ),
    "GET /projects/{project}/campaigns/{campaign}/meeting-decisions/": Method(
        "meeting_decisions", "The decisions of a campaign's calibration meetings, the newest meeting first."
    ),
    "POST /projects/{project}/campaigns/{campaign}/meeting-decisions/": Method(
        "record_meeting_decision",
        "Record what a meeting decided, on a criterion (its key) and an item (its external id) or in general.",
    ),
    "GET /projects/{project}/campaigns/{campaign}/duties/{duty}/next-items/": Method(
        "preview_next_items", "What `draw_next_items` would give out with the ``seed`` of the answer; stores nothing."
    ),
    "DELETE /projects/{project}/campaigns/{campaign}/duties/{duty}/next-items/": Method(
        "take_back_next_items", "Take back the items that were drawn last, while nobody has rated one of them."
    ),
    "POST /projects/{project}/campaigns/{campaign}/duties/{duty}/next-items/": Method(
        "draw_next_items", "Draw about ``wanted`` more items into a duty, more often where the ``judge`` may be wrong."
    ),
    "GET /projects/{project}/campaigns/{campaign}/decisions/": Method(
        "decisions", "What each judge may be used for in each criterion and language, with reasons and figures."
    ),
    "GET /projects/{project}/campaigns/{campaign}/study/": Method(
        "study",
        "What was found, in sentences: people, judges, generators, how sure that is, and what is open.",
    ),
    "GET /projects/{project}/campaigns/{campaign}/workflow/": Method(
        "workflow",
        "The four steps before a judge is used across languages, each passed, failed, insufficient or not_run.",
    ),
    "GET /projects/{project}/campaigns/{campaign}/decisions/history/": Method(
        "decision_history", "The changes of a campaign's decisions, newest first, each with why."
    ),
    "GET /projects/{project}/thresholds/": Method(
        "thresholds", "Every version of the project's thresholds, the one that holds first."
    ),
    "POST /projects/{project}/audits/forecast/": Method(
        "forecast_audit",
        "What an audit takes: calls exactly, tokens and cost roughly, and how many items each change changes.",
        repeatable=True,
    ),
    "GET /projects/{project}/alignments/": Method("alignments", "The project's alignments, newest first."),
    "POST /projects/{project}/alignments/": Method(
        "create_alignment",
        "Split the labels of a campaign once, to align the judge ``base`` with them; nothing is sent.",
    ),
    "GET /projects/{project}/alignments/{alignment_pk}/": Method(
        "alignment", "The split, every version on the tuning items, and what the looks have shown."
    ),
    "PUT /projects/{project}/alignments/{alignment_pk}/budget/": Method(
        "set_alignment_budget", "Raise or lower the cap in USD over everything that an alignment asks; None removes it."
    ),
    "POST /projects/{project}/alignments/{alignment_pk}/close/": Method(
        "close_alignment",
        "Give up the looks that are left, for good. Without a look so far, what was locked is free again.",
    ),
    "POST /projects/{project}/alignments/{alignment_pk}/versions/": Method(
        "add_version",
        "Make a version with these instructions and texts, and ask it about the tuning items. "
        '``own_texts``: ``[{"criterion": "fluency", "point": 3, "text": "..."}]``; ``point`` None is the '
        "definition.",
    ),
    "POST /projects/{project}/alignments/{alignment_pk}/versions/{judge}/run/": Method(
        "run_version", "Ask a version about the tuning items. Started again, it is the same run.", repeatable=True
    ),
    "GET /projects/{project}/alignments/{alignment_pk}/versions/{judge}/confusions/": Method(
        "confusions", "The tuning items on which a version differs most from the panel, with the words of both."
    ),
    "POST /projects/{project}/alignments/{alignment_pk}/versions/{judge}/proposals/": Method(
        "propose_version",
        "Have a model write the next version from this one's differences on the tuning items. `alignment` shows it.",
    ),
    "POST /projects/{project}/alignments/{alignment_pk}/searches/": Method(
        "start_search", "Search for versions with examples: ``random`` or ``greedy``. The alignment's budget caps it."
    ),
    "POST /projects/{project}/alignments/{alignment_pk}/versions/{judge}/look/": Method(
        "take_look",
        "Test a version on the locked items. It is counted, written to the audit trail, and can't be taken back.",
    ),
    "GET /projects/{project}/imports/": Method("imports", "The project's imports."),
    "GET /projects/{project}/imports/{file_import}/": Method("get_import", "State and report of an import."),
    "PATCH /projects/{project}/imports/{file_import}/": Method(
        "revise_import", "Change an import that is not stored yet: its kind, its mapping, its target."
    ),
    "DELETE /projects/{project}/imports/{file_import}/": Method(
        "discard_import", "Delete an import that stored nothing, with its files."
    ),
    "POST /projects/{project}/imports/{file_import}/also/": Method(
        "import_also", "Open another import of the same files, as another kind."
    ),
    "POST /projects/{project}/imports/{file_import}/check/": Method(
        "check_import", "Check a large import again, in the background."
    ),
    "POST /projects/{project}/imports/{file_import}/apart/": Method(
        "take_apart", "Replace the import of a study by separate imports, one per kind. Returns the first."
    ),
    "GET /projects/{project}/studies/": Method("studies", "The known studies and tools, and how their files are read."),
    "GET /projects/{project}/mappings/": Method("mappings", "The saved mappings of the project."),
    "POST /projects/{project}/mappings/": Method("save_mapping", "Save a mapping under a name."),
    "GET /projects/{project}/mappings/{mapping}/": Method("mapping", "One saved mapping."),
    "DELETE /projects/{project}/mappings/{mapping}/": Method("delete_mapping", "Delete a saved mapping."),
    "GET /projects/{project}/uploads/{upload}/": Method("upload_state", "How many bytes of a file the server has."),
    "GET /projects/{project}/transfers/": Method("transfers", "The user's own transfers, newest first."),
    "GET /projects/{project}/transfers/{transfer}/": Method("transfer", "The progress and the result of a transfer."),
    "DELETE /projects/{project}/transfers/{transfer}/": Method(
        "remove_transfer", "Delete a transfer and its file on the server."
    ),
}
