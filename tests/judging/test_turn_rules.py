"""Turn rules: every planted error is found, clean replies pass in every script, hostile replies end soon."""

from __future__ import annotations

import json
import time
import unicodedata
from typing import Literal

import pytest

from judging.generation.drawing import draw_parameters
from judging.generation.messages import TOLD
from judging.generation.specs import Spec, from_yaml, preset
from judging.generation.turn_rules import LONGEST_REPLY, Written, read_written
from tests.judging.test_translations import BROKEN_TRANSLATIONS

SUPPORT = preset("support-dialogues")
DRAWN = draw_parameters(SUPPORT, seed=3, number=1) | {"messages": 4}
CLEAN = {
    "et": (
        "Tere! Minu tellimus ei ole ikka veel kohale jõudnud, kas saate aidata?",
        "Tere päevast, Mari! Vaatan kohe järele. Kas ütleksite palun tellimuse numbri?",
        "Number on 4417 ja ma tellisin selle kolmapäeval.",
        "Aitäh! Pakk on teel ja jõuab teieni homme.",
    ),
    "en": (
        "Hi, my order has not arrived and I need it for Friday.",
        "Hello Mary, thank you for writing. Could you give me the number of the order?",
        "It is 4417, and I ordered it on Wednesday.",
        "Thank you. The parcel is on its way and will be with you tomorrow.",
    ),
    "es": (
        "Hola, mi pedido no ha llegado y lo necesito para el viernes.",
        "¡Buenos días, María! Lamento la espera. ¿Me puede decir el número del pedido?",
        "Es el 4417 y lo pedí el miércoles por la tarde.",
        "Muchas gracias. El paquete está en camino y llegará mañana.",
    ),
    "ja": (
        "注文した自転車のライトがまだ届いていません。確認していただけますか。",
        "こんにちは、山田様。ご不便をおかけしております。注文番号を教えていただけますか。",
        "番号はAB-4417です。水曜日に注文しました。",
        "ありがとうございます。お荷物は明日お届けの予定です。",
    ),
    "ar": (
        "لم يصل طلبي حتى الآن وأحتاج إليه يوم الجمعة.",
        "مرحبًا بك يا مريم، نأسف للتأخير. ما هو رقم الطلب من فضلك؟",
        "الرقم هو 4417 وقد طلبته يوم الأربعاء.",
        "شكرًا لك. الطرد في الطريق إليك وسيصل غدًا.",
    ),
    "hi": (
        "मेरा ऑर्डर अभी तक नहीं आया है और मुझे शुक्रवार तक चाहिए।",
        "नमस्ते मीना जी, देरी के लिए खेद है। क्या आप ऑर्डर संख्या बता सकती हैं?",
        "संख्या 4417 है और मैंने बुधवार को ऑर्डर किया था।",
        "धन्यवाद। आपका पार्सल कल तक पहुँच जाएगा।",
    ),
}


def _reply(texts: tuple[str, ...], speakers: tuple[str, ...] = ("customer", "agent")) -> str:
    turns = [{"speaker": speakers[number % len(speakers)], "text": text} for number, text in enumerate(texts)]
    return json.dumps({"turns": turns}, ensure_ascii=False)


def _codes(reply: str, *, language: str = "en", spec: Spec = SUPPORT, finish_reason: str = "stop") -> set[str]:
    read = read_written(spec, DRAWN, language=language, reply=reply, finish_reason=finish_reason)
    return set() if isinstance(read, Written) else {problem.code for problem in read}


def _with(number: int, text: str, language: str = "en") -> str:
    texts = list(CLEAN[language])
    texts[number] = text
    return _reply(tuple(texts))


@pytest.mark.parametrize("language", CLEAN)
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_clean_replies_pass_in_every_script(language: str, form: Literal["NFC", "NFD"]) -> None:
    texts = tuple(unicodedata.normalize(form, text) for text in CLEAN[language])
    read = read_written(SUPPORT, DRAWN, language=language, reply=_reply(texts), finish_reason="stop")
    assert read == Written(
        tuple({"speaker": ("customer", "agent")[number % 2], "text": text} for number, text in enumerate(texts))
    )


def test_a_reply_is_read_however_it_is_wrapped() -> None:
    plain = _reply(CLEAN["en"])
    transcript = "\n".join(f"**{('Customer', 'Agent')[n % 2]}:** {text}" for n, text in enumerate(CLEAN["en"]))
    for reply in (plain, f"```json\n{plain}\n```", f"Here it is {{as asked}}:\n{plain}\nAnything else?", transcript):
        assert isinstance(read_written(SUPPORT, DRAWN, language="en", reply=reply), Written), reply


BROKEN = {
    "unreadable": '{"dialogue": "customer and agent talk"}',
    "refusal": "I'm sorry, but I can't help with that.",
    "reasoning": f"<think>The customer should write first.</think>{_reply(CLEAN['en'])}",
    "hidden_characters": _with(2, "It is \u202e7144, and I ordered it on Wednesday."),
    "no_text": '{"turns": []}',
    "empty_turn": _with(2, "  "),
    "unknown_role": _reply(CLEAN["en"], ("customer", "agent", "customer", "Kundendienst")),
    "same_role": _reply(CLEAN["en"], ("customer", "agent", "agent", "customer")),
    "wrong_count": _reply(CLEAN["en"][:2]),
    "no_greeting": _with(1, "What is the number of the order?"),
    "long_turn": _with(2, "It is 4417. " * 800),
    "wrong_script": _reply(CLEAN["ar"]),
    "mixed_script": _with(2, "請告訴我什麼時候可以送到我家，非常感謝你。"),
    "wrong_language": _reply(CLEAN["es"]),
    "mixed_language": _with(2, CLEAN["et"][0] + " Ma ei tea, kas see on teie viga, aga kui ei ole, siis mis see on?"),
    "stand_in": _with(3, "Thank you, [Customer Name]. The parcel is on its way."),
    "copied_brief": _with(2, "Write as people do there, also in length and form of address. It is 4417."),
    "repeated_turn": _with(3, CLEAN["en"][1]),
}
PAIR = preset("pairs")
ENDS = from_yaml(SUPPORT.as_yaml.replace("greets: agent", "greets: agent\n  starts: agent\n  ends: customer"))


@pytest.mark.parametrize("code", BROKEN)
def test_every_planted_error_is_found(code: str) -> None:
    assert code in _codes(BROKEN[code])


def test_errors_that_need_another_rule_or_an_ending_are_found() -> None:
    clean = _reply(CLEAN["en"])
    assert _codes(clean, finish_reason="length") == {"cut_off"}
    assert _codes(clean, finish_reason="content_filter") == {"refusal"}
    assert _codes(clean + " " * LONGEST_REPLY) == {"too_long"}
    assert _codes(clean, spec=ENDS) == {"wrong_start", "wrong_end"}
    pair = json.dumps({"passage_a": "Boil the egg for six minutes.", "passage_b": "Boil the egg for six  minutes."})
    drawn = draw_parameters(PAIR, seed=1, number=1)
    read = read_written(PAIR, drawn, language="en", reply=pair)
    assert not isinstance(read, Written) and [problem.code for problem in read] == ["same_texts"]
    found = {*BROKEN, "cut_off", "too_long", "wrong_start", "wrong_end", "same_texts"}
    assert found | {code for codes in BROKEN_TRANSLATIONS.values() for code in codes} == set(TOLD), (
        "a planted error for every code"
    )


def test_given_fields_are_part_of_the_item_and_may_be_repeated() -> None:
    spec = preset("single-answers")
    drawn = draw_parameters(spec, seed=5, number=2)
    question = str(spec.parameters[0].level(drawn["question"]).text("et"))
    reply = json.dumps({"answer": f"{question} Sest niiskus liigub ja see on lihtne: koor kuivab kõigepealt."})
    read = read_written(spec, drawn, language="et", reply=reply)
    assert isinstance(read, Written) and list(read.fields) == ["question", "answer"]
    assert read.fields["question"] == question


@pytest.mark.parametrize(
    "reply",
    [
        "{" * 300_000,
        "[" * 300_000,
        '{"turns": ' * 30_000,
        "x" * 10_000_000,
        '{"turns": [' + '{"speaker": "customer", "text": "\u202e\u2066"},' * 8_000 + "{}]}",
        "```json\n" * 40_000,
        "<" * 300_000,
        "[a" * 150_000,
        "customer:\n" * 35_000,
        _with(2, "the <b " * 40_000),
        json.dumps({"turns": [{"speaker": "agent", "text": "Tere " * 30_000}] * 2}),
        "\ud800" * 1000,
    ],
    ids=lambda reply: repr(reply[:20]),
)
def test_hostile_replies_end_soon(reply: str) -> None:
    began = time.process_time()
    assert _codes(reply)
    assert time.process_time() - began < 2.0
