"""Rows that are turns, put together to dialogues."""

from __future__ import annotations

import pytest

from annotation.readers.guessing import guess_kind, propose_mapping
from annotation.readers.items import ParsedItems, parse_items
from annotation.readers.mapping import Mapping

HEAD = b"conversation_id,turn,role,text,at,lang\n"
CHAT = HEAD + b'c1,2,agent,Tere!,10:01,et\nc1,1,client,"Hei\r\nhei",10:00,et\nc2,1,client,Aitah,11:00,et\n'


def parsed(raw: bytes, said: Mapping | None = None) -> ParsedItems:
    guessed = propose_mapping("dataset", [("chat.csv", CHAT)], Mapping())
    return parse_items([("chat.csv", raw)], guessed.updated(said or Mapping()))


def refusal(*rows: str) -> str:
    found = parsed(HEAD + "".join(f"{row}\n" for row in rows).encode())
    assert found.report.refused == 1
    return found.problems.sentences()[0]


def test_the_guess_sees_turns_in_rows_that_share_an_id() -> None:
    assert propose_mapping("dataset", [("chat.csv", CHAT)], Mapping()).columns == {
        "conversation_id": "id",
        "lang": "language",
        "turn": "turn.number",
        "role": "turn.speaker",
        "text": "turn.text",
        "at": "turn.at",
    }


def test_turns_stand_in_the_order_of_their_numbers_and_keep_their_text() -> None:
    found = parsed(CHAT)
    assert found.problems.sentences() == []
    assert [(item.external_id, item.turns, item.line) for item in found.items] == [
        ("c1", [{"speaker": "client", "text": "Hei\r\nhei"}, {"speaker": "agent", "text": "Tere!"}], 2),
        ("c2", [{"speaker": "client", "text": "Aitah"}], 5),
    ]
    assert list(found.problems.notes) == ["chat.csv: 3 rows are the turns of 2 dialogues."]
    assert found.report.dropped == {"at": 3}


def test_a_value_map_names_the_speakers() -> None:
    found = parsed(CHAT, Mapping(values={"turn.speaker": {"client": "user"}}))
    assert {turn["speaker"] for item in found.items for turn in item.turns} == {"user", "agent"}


SCATTERED = """\
chat.csv, line 4, conversation_id: found rows of “a” again, after the rows of other dialogues; \
expected all rows of a dialogue below each other: sort the file by conversation_id."""
WITHOUT_ID = "chat.csv, line 3, conversation_id: found nothing; expected the id of the dialogue in each of its rows."
TWICE = "chat.csv, line 2, turn: found turn 1 more than once; expected a number of its own for each turn."
NO_NUMBER = """\
chat.csv, line 2, turn: found “first”; expected a number for turn.number; a word can be given a value in the mapping, \
as in values: {turn.number: {Yes: 1}}."""
MIXED = """\
chat.csv, line 2, lang: found “et”, but “en” on line 3; expected one lang in all rows of a dialogue; one that differs \
is ignored, or given turn.lang."""
NOBODY = "chat.csv, line 2, turn 1: found nothing; expected who speaks, under speaker."


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (["a,1,x,t,0,et", "b,1,x,t,0,et", "a,2,x,t,0,et"], SCATTERED),
        (["a,1,x,t,0,et", ",2,x,t,0,et"], WITHOUT_ID),
        (["a,1,x,t,0,et", "a,1.0,y,t,0,et"], TWICE),
        (["a,first,x,t,0,et"], NO_NUMBER),
        (["a,1,x,t,0,et", "a,2,y,t,0,en"], MIXED),
        (["a,1,,t,0,et"], NOBODY),
    ],
)
def test_rows_that_make_no_dialogue_are_refused(rows: list[str], sentence: str) -> None:
    assert refusal(*rows) == sentence


def test_turns_need_the_id_of_their_dialogue() -> None:
    mapping = Mapping(columns={"role": "turn.speaker", "text": "turn.text"}, constants={"language": "et"})
    found = parse_items([("chat.csv", CHAT)], mapping)
    assert [problem.code for problem in found.problems] == ["no_column"]


def test_share_gpt_and_an_id_that_is_called_otherwise() -> None:
    raw = b'{"chat_id": 7, "language": "en", "conversations": [{"from": "human", "value": "Hi"}]}\n'
    found = parse_items([("x.jsonl", raw)], propose_mapping("dataset", [("x.jsonl", raw)], Mapping()))
    assert [(item.external_id, item.turns) for item in found.items] == [("7", [{"speaker": "human", "text": "Hi"}])]


def test_who_takes_part_rates_only_where_nobody_speaks() -> None:
    chat = b"chat_id,participant_id,speaker,text\n1,p1,a,Hi\n1,p2,b,Ho\n"
    survey = b"item_id,participant_id,question,response\n1,p1,fluency,3\n1,p2,fluency,2\n"
    assert [guess_kind([("x.csv", raw)]) for raw in (chat, survey)] == ["dataset", "ratings"]


def test_keys_of_which_each_has_one_record_are_ids() -> None:
    raw = b'{"7": {"lang": "en", "answer": "a"}, "8": {"lang": "en", "answer": "b"}}'
    found = parse_items([("x.json", raw)], propose_mapping("dataset", [("x.json", raw)], Mapping()))
    assert [item.external_id for item in found.items] == ["7", "8"]
