"""`panelbench simulate`: have user models talk with chatbots, turn by turn, and store the conversations as a dataset.

Exit status as of `panelbench generate`.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from accounts.refusals import Refused
from annotation.models import RubricVersion
from judging.generation.specs import SIMULATIONS
from judging.generation.utterance_judge import declare_utterance_judge, utterance_rubric
from judging.management.commands import generate
from judging.models import Judge


class Command(generate.Command):
    help = "Have user models talk with chatbots, turn by turn; --store makes a dataset of the conversations."
    presets = SIMULATIONS

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--users", required=True, metavar="PROVIDER/MODEL,...", help="the models that play the user"
        )
        parser.add_argument(
            "--user-parameters", type=json.loads, default={}, metavar="JSON", help="of every user model"
        )
        parser.add_argument(
            "--utterance-judge",
            metavar="NAME | PROVIDER/MODEL",
            help="a judge of the project, or a model that is declared as one: it judges every user turn",
        )
        parser.add_argument(
            "--rubric-version", type=int, metavar="ID", help="of the utterance judge (our rubric for user turns)"
        )

    def roles(self, options: dict[str, Any]) -> dict[str, Any]:
        """The user models, and the utterance judge with its rubric."""
        users = [generate.choice(text, options["user_parameters"]) for text in options["users"].split(",")]
        named, project = options["utterance_judge"], options["of_project"]
        if not named:
            return {"user_models": users}
        judge = Judge.objects.filter(project=project, name=named).first()
        if judge is None:
            provider, slash, model = named.partition("/")
            if not slash:
                raise Refused(f"This project has no judge “{named}”, and it is no PROVIDER/MODEL.")
            judge = declare_utterance_judge(project=project, provider=provider, model=model)
        asked = options["rubric_version"]
        versions = RubricVersion.objects.filter(rubric__project=project, pk=asked)
        rubric_version = utterance_rubric(project=project) if asked is None else versions.first()
        if rubric_version is None:
            raise Refused(f"This project has no rubric version {options['rubric_version']}.")
        return {"user_models": users, "utterance_judge": judge, "utterance_rubric": rubric_version}
