"""What reads as a person's name, and what does not."""

import pytest

from annotation.readers.names import among, personal

PERSONS = {
    "Marta González": "Marta González",
    "anna_k_score": "anna_k",
    "AnnaScore": "Anna",
    "score (Katrin Mägi)": "Katrin Mägi",
    "rater: J. Smith": "rater: J. Smith",
    "Smith, J.": "Smith, J.",
    "rated by Tamm": "rated by Tamm",
    "rater: Tamm": "rater: Tamm",
    "j.smith@example.org": "j.smith@example.org",
    "Fluency <mari.tamm@ut.ee>": "mari.tamm@ut.ee",
    "Łukasz": "Łukasz",
    "Mark Johnson": "Mark Johnson",
    "Mihhail Kuznetsov": "Mihhail Kuznetsov",
    "Мария Иванова": "Мария Иванова",
    "Андрей (беглость)": "Андрей",
    "Γιώργος Παπαδόπουλος": "Γιώργος Παπαδόπουλος",
    "محمد علي": "محمد علي",
    "יעל": "יעל",
    "सुनील कुमार": "सुनील",
    "王伟": "王伟",
    "佐藤健": "佐藤健",
    "김민수": "김민수",
}
HEADINGS = [
    *("Overall Quality", "Fluency", "Human 1 RE", "Question A. Fluency", "Section B.", "F. Score", "Max Score", "Mark"),
    *("Grace", "Joy", "May", "ann1", "Ann-2", "Annotator5", "Rater A", "rater_nationality", "rater: native", "slot 12"),
    *("Estonian", "Northern Sami", "Roman Urdu", "Mari", "pt-BR", "GPT-4o", "Mistral Large", "Claude Opus", "Nova Pro"),
    *("claude-3-opus", "Gemma 2 9B", "Roberta large", "BERT", "Ada-002", "Prometheus 2", "ROUGE-1 F-Score Ξ§", "ECE"),
    *(
        "user.name",
        "reviewer_name",
        "_metadata.agent_type",
        "安全性",
        "高质量",
        "정확성",
        "общее качество",
        "الطلاقة",
        "",
    ),
]


@pytest.mark.parametrize(("text", "person"), PERSONS.items())
def test_a_person_is_seen(text: str, person: str) -> None:
    assert personal(text) == person


@pytest.mark.parametrize("text", HEADINGS)
def test_a_heading_is_no_person(text: str) -> None:
    assert personal(text) == ""


def test_each_person_is_told_once() -> None:
    assert among(["fluency", "Marta González", "x@y.ee", "Marta González"]) == ["Marta González", "x@y.ee"]
