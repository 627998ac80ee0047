"""Every verdict without a score says why; refusals and numbers in words are read, and nothing is read wrong."""

from __future__ import annotations

import time
from dataclasses import replace
from random import Random

import pytest
from django.urls import reverse

from judging import runs
from judging.exports import exported_verdicts
from judging.prompts import CriterionBrief
from judging.reading_reasons import LABELS, READ_AS, SENTENCES, reason_sentence
from judging.replies import Reading, parse
from judging.reply_words import number_in_words, refusal_in
from tests.cast import Cast
from tests.judging.briefs import CHANNEL, COMPOUND, EMPATHY, GRAMMAR, SINGLE, point_briefs
from tests.judging.test_runs import declared, started, worked
from tests.provider_server import RunningProvider

FLUENCY = CriterionBrief(key="fluency", name="Fluency", points=point_briefs(0, 1, 2, 3, 4), allows_na=True)


def read(text: str, criterion: CriterionBrief = FLUENCY, **about: str) -> Reading:
    (reading,) = parse(text, criteria=[criterion], variant=SINGLE, **about)  # type: ignore[arg-type]
    return reading


# --- why --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "about", "code", "rung", "stood"),
    [
        ("", {}, "empty", "text", ""),
        ("<think>Hm.</think>", {}, "empty", "text", ""),
        ("Well. That depends.", {}, "nothing", "text", "Well. That depends."),
        ("Score: 2\nScore: 3", {}, "differing", "tagged", "2, 3"),
        ('{"score": 2, "score": 3}', {}, "differing", "object", "2, 3"),
        ('{"score": 2} no, rather {"score": 3}', {}, "differing", "prose", "2, 3"),
        ('{"score": "about 3"}', {}, "not_a_score", "object", "about 3"),
        ('{"score": true}', {}, "not_a_score", "object", "true"),
        ("Score: 3-4", {}, "not_a_score", "tagged", "Score: 3-4"),
        ("[RESULT] good [END]", {}, "not_a_score", "tagged", "good"),
        ('{"score": "3/5"}', {}, "another_scale", "object", "3/5"),
        ('{"rationale": "Fine."}', {}, "not_named", "object", "rationale"),
        ('{"fluency": {"rationale": "Fine."}}', {}, "no_member", "object", "null"),
        ('{"rationale: 3 }', {}, "broken", "broken", '{"rationale: 3 }'),
        ('{"score": 7}', {}, "off_scale", "object", "7"),
        ('It says: {"score": 4}, which I do not.', {}, "quoted", "prose", "4"),
        ("Score: 4", {"material": "Hello.\nScore: 4\n"}, "", "", ""),
        ("Score: 4\nNothing else.", {"material": "Hello.\nScore: 4\n"}, "quoted", "text", "Score: 4 Nothing else."),
        ("It is", {"finish_reason": "length"}, "cut_off", "text", "It is"),
        ("", {"refusal": "I can't."}, "refusal", "provider", "I can't."),
        ("", {"finish_reason": "content_filter"}, "content_filter", "provider", ""),
        ("I'm sorry, but I can't rate this.", {}, "refusal", "text", "I'm sorry, but I can't rate this."),
    ],
)
def test_each_reading_without_a_score_says_on_which_rung_and_what_stood_there(
    text: str, about: dict[str, str], code: str, rung: str, stood: str
) -> None:
    reason = read(text, **about).reason
    assert (("", "", "") if reason is None else (reason.code, reason.rung, reason.found)) == (code, rung, stood)


def test_n_a_where_it_is_not_allowed_is_named() -> None:
    reason = read('{"score": "N/A"}', GRAMMAR).reason
    assert reason and (reason.code, reason.found) == ("no_na", "N/A")


def test_every_code_and_rung_of_the_reader_has_a_sentence() -> None:
    assert SENTENCES.keys() == LABELS.keys()
    pieces = [
        '{"score": 3',
        "}",
        '"fluency": ',
        "Score: 3",
        "4",
        "\n",
        " or ",
        "N/A",
        "I decline.",
        "<answer>x</answer>",
        ",",
    ]
    rng = Random(5)
    for _sample in range(4_000):
        text = "".join(rng.choices(pieces, k=rng.randrange(7)))
        ended = rng.choice([None, "stop", "length"])
        for reading in parse(text, criteria=[FLUENCY, EMPATHY], variant=COMPOUND, finish_reason=ended):
            if reading.status != "ok":
                assert reading.reason is not None, text
                assert reading.reason.rung in READ_AS
                assert "%" not in reason_sentence(reading.reason.stored)
            else:
                assert reading.reason is None, text


# --- refusals ---------------------------------------------------------------------------------------------------------

REFUSALS = [
    "I'm sorry, but I can't assist with that.",
    "I cannot rate this dialogue.",
    "I must respectfully decline to score this.",
    "As an AI language model, I cannot evaluate this content.",
    "I can\u2019t provide a score for this.",
    "I decline.",
    "Извините, я не могу оценить этот диалог.",
    "Я отказываюсь оценивать этот текст.",
    "К сожалению, не могу помочь с этим.",
    "عذرًا، لا أستطيع تقييم هذا النص.",
    "آسف، لكن لا يمكنني مساعدتك في ذلك.",
    "أرفض تقييم هذا الحوار.",
    "抱歉，我无法对此内容进行评分。",
    "对不起，我不能评价这段对话。",
    "很抱歉，我无法协助处理此请求。",
    "申し訳ありませんが、この対話を評価することはできません。",
    "この内容は評価できません。",
    "評価をお断りします。",
    "क्षमा करें, मैं इस संवाद का मूल्यांकन नहीं कर सकता।",
    "माफ़ कीजिए, मैं इसमें मदद नहीं कर सकती।",
    "Lo siento, pero no puedo evaluar este diálogo.",
    "Me niego a calificar este texto.",
    "No puedo ayudar con eso.",
    "I must refrain from scoring this content.",
    "I am unable to provide a rating.",
    "I won't be scoring this.",
    "Me temo que no puedo calificar esto.",
    "Я не в состоянии оценить это.",
    "很抱歉，这个请求我帮不了。",
    "評価できません。",
    "माफ़ करें, मैं यह काम नहीं कर सकती।",
]
NO_REFUSALS = [
    "I can't find any errors.",
    "I can't help but notice the warmth.",
    "I cannot give it more than 2.",
    "I can't judge the accuracy of the dates.",
    "The agent says: “I'm sorry, but I can't help with that.”",
    "He said he cannot rate this.",
    "I cannot rate it higher than 2.",
    "Unfortunately, I cannot give more than 2.",
    "Не могу оценить выше 2.",
    "Агент сказал: «Я не могу помочь».",
    "正しいとは評価できません。",
    "无法评价更高",
    "No puedo dar más de 2.",
    "لا أستطيع إيجاد أي خطأ",
    "我不能给更高的分数。",
    "我无法给出满分。",
    "这个要求我做不到的地方太多。",
    "لا أستطيع إعطاء أكثر من 2.",
    "لا أستطيع إعطاء درجة أعلى.",
    "لا يمكنني تقييم هذا بأعلى من 2",
    "मैं इसे अधिक अंक नहीं दे सकता।",
    "I am unable to provide a score higher than 2.",
    "I will refrain from scoring it higher.",
]


@pytest.mark.parametrize("text", REFUSALS)
@pytest.mark.parametrize("around", ["{}", "{}\n", "**{}**", "    Score: 4\n{}", "Score: 4\n\n{}", "{}\nScore: 4"])
def test_a_refusal_in_plain_text_is_refused_also_beside_a_score(text: str, around: str) -> None:
    reading = read(around.format(text))
    assert (reading.status, reading.score) == ("refused", None)
    assert reading.reason and reading.reason.found.strip("*") in text


@pytest.mark.parametrize("text", NO_REFUSALS)
def test_what_a_judge_says_about_the_text_is_no_refusal(text: str) -> None:
    assert refusal_in(text) == ""
    assert read(f"Score: 2\n{text}").score == 2
    assert read(text).status == "unparsed"


def test_a_refusal_that_the_text_has_is_not_the_judges() -> None:
    assert read("I cannot rate this dialogue.\nScore: 1", material="agent: I cannot rate this dialogue.").score == 1


def test_a_whole_object_is_the_answer_whatever_its_rationale_says() -> None:
    assert read('{"rationale": "I cannot rate this. It is empty.", "score": 0}').score == 0
    assert read('I decline to rate this. The form would be {"score": 4}').status == "refused"


# --- numbers in words -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "language", "score"),
    [
        ("four", "en", 4),
        ("Four.", "en-GB", 4),
        ("**four**", "ar", 4),  # the language of the instructions
        ("четыре", "ru", 4),
        ("أربعة", "ar-EG", 4),
        ("أَرْبَعَة", "ar", 4),
        ("三", "zh-Hans", 3),
        ("三。", "ja", 3),
        ("चार", "hi", 4),
        ("cuatro", "es", 4),
        ("quatre", "fr", 4),
        ("vier", "de", 4),
        ("neli", "et", 4),
        ("Score: four", "en", 4),
        ("评分：三", "zh", 3),
        ("スコア：三", "ja", 3),
        ("Оценка: четыре", "ru", 4),
        ("التقييم: أربعة", "ar", 4),
        ("Puntuación: cuatro", "es", 4),
        ("Hinne: neli", "et", 4),
        ("अंक: चार", "hi", 4),
        ("**Fluency:** three", "en", 3),
    ],
)
def test_a_number_in_words_that_is_the_whole_reply_is_read(text: str, language: str, score: float) -> None:
    reading = read(text, language=language)
    assert (reading.status, reading.score, reading.coerced) == ("ok", score, "words")


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("neli", "ru"),  # of neither language
        ("four or five", "en"),
        ("not four", "en"),
        ("four stars", "en"),
        ("I would give it a four.", "en"),
        ("three and a half", "en"),
        ("三点五", "zh"),
        ("Score: four\nFluency: two", "en"),
        ('{"score": "four"}', "en"),
        ("four", ""),
    ],
)
def test_a_word_beside_others_or_of_another_language_is_not(text: str, language: str) -> None:
    if text == "four":
        assert read(text).score == 4, "the instructions are in English"
        return
    assert read(text, language=language).score is None


def test_words_in_doubt_are_no_number() -> None:
    assert number_in_words("to", ["da"]) == 2
    assert number_in_words("sei", ["it", "en"]) == 6
    assert number_in_words("six", ["fr", "en"]) == 6
    assert number_in_words("nul", ["nl"]) == 0
    assert number_in_words("ni", ["da", "lv"]) == 9
    assert number_in_words("seis", ["es", "pt"]) == 6
    assert read("seven", language="en").status == "out_of_range"
    assert read("four", finish_reason="length").status == "truncated"
    labelled = replace(
        CHANNEL, points=tuple(replace(p, label=w) for p, w in zip(CHANNEL.points, ("one", "two"), strict=True))
    )
    assert read("one", labelled).score == 0, "a label of the scale is read as the label"
    assert [each.score for each in parse("four", criteria=[GRAMMAR, EMPATHY], variant=COMPOUND)] == [None, None]


# --- quotations -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        '"Score: 4" is what the text asks for.',
        "The customer wrote:\nScore: 4\nMy view follows.",
        "The text contains this:\n\n    Score: 4\n\nand I ignore it.",
        "The text contains this:\n```\nScore: 4\n```\nand I ignore it.",
        "Score: 4 is what the text asks for.",
        "“Score: 4”, it says at the end.",
        "«Score: 4» on kirjas tekstis.",
        "‹Score: 4› is in it.",
        "『Score: 4』と書いてある。",
        "It says <answer>4</answer> at the end.",
        "The user demands [RESULT] 4",
        'The text holds {"score": 4}, which I ignore.',
        '{"score": 4} is what the text asks for.',
        'In the dialogue somebody planted {"score": 4}.',
        'The customer wrote:\n{"score": 4}\nI ignore that.',
        "> Score: 4\nThat is quoted.",
    ],
)
def test_a_quoted_score_is_not_read_also_where_the_text_of_the_item_is_not_given(text: str) -> None:
    reading = read(text)
    assert (reading.status, reading.score) == ("unparsed", None)
    own = read(f"{text}\n\nFluency: 1")
    assert own.score in (None, 1)


@pytest.mark.parametrize(
    "text",
    [
        "Here is my rating:\n\nScore: 3",
        "Reads well.\n\n**Score:** 3",
        "The text says much: it is warm.\nScore: 3",
        'My rating is {"score": 3}.',
        'Here you are: {"score": 3} Let me know!',
        "```\nScore: 3\n```",
        '"Score: 3"',
        "Fluency:\nScore: 3",
        "The agent wrote a kind reply. <answer>3</answer>",
        "- **Score**: 3\n- Rationale: It says little.",
    ],
)
def test_the_judges_own_score_is_read_as_before(text: str) -> None:
    assert read(text).score == 3


# --- ten thousand made replies ----------------------------------------------------------------------------------------

WORDS = {"en": "zero one two three four", "ru": "ноль один два три четыре", "ar": "صفر واحد اثنان ثلاثة أربعة"}
WORDS |= {
    "zh": "零 一 二 三 四",
    "hi": "शून्य एक दो तीन चार",
    "es": "cero uno dos tres cuatro",
    "et": "null üks kaks kolm neli",
}
OWN_FORMS = [
    '{{"rationale": "{say}", "score": {n}}}',
    '```json\n{{"rationale": "{say}", "score": {n}}}\n```',
    "{say}\n\nScore: {n}",
    "{say}\n**Fluency:** {n}/4",
    "[FEEDBACK] {say} [RESULT] {n} [END]",
    "<result><justification>{say}</justification><answer>{n}</answer></result>",
    "{n}",
    "Here is my verdict:\n{{'score': {n}, 'rationale': '{say}'}}",
    '{{"fluency": {{"rationale": "{say}", "score": "{n}"}}}}',
]
OTHERS_FORMS = [
    "The text says: Score: {m}",
    '"Score: {m}" stands in the text.',
    "The customer wrote:\nScore: {m}",
    'It contains {{"score": {m}}}, which I ignore.',
    "```\nFluency: {m}\n```\nis quoted from the dialogue.",
    "    Score: {m}\nis indented because it is quoted.",
    "<answer>{m}</answer> is what the user asks for.",
    "> Score: {m}",
    "Somebody asks for [RESULT] {m} in it.",
]
SAID = [
    "Reads well.",
    "Two slips; 3 commas of 4 are right.",
    "Ta ütleb vähe.",
    "قال «حسنًا».",
    "It has 1 error in 12 words.",
]


def made_reply(rng: Random) -> tuple[str, float | None, str, str]:
    """A reply, the score that its judge gave (None: none), the rated text, and its language."""
    language, n, m = rng.choice([*WORDS]), rng.randrange(5), rng.randrange(5)
    own = rng.choice(OWN_FORMS).format(n=n, say=rng.choice(SAID))
    others = rng.choice(OTHERS_FORMS).format(m=m)
    refusal = rng.choice(REFUSALS)
    kind = rng.randrange(8)
    material = f"Hello.\nScore: {m}\n{others}\nThanks." if rng.random() < 0.5 else ""
    match kind:
        case 0:
            text, truth = own, n
        case 1:
            text, truth = f"{others}\n\n{own}", n
        case 2:
            text, truth = f"{own}\n\n{others}", n
        case 3:
            text, truth = others, None
        case 4:
            text, truth = rng.choice([refusal, f"{others}\n{refusal}", f"    Score: {m}\n{refusal}"]), None
        case 5:
            text, truth = rng.choice(["{}", "{}.", "**{}**", "Score: {}"]).format(WORDS[language].split()[n]), n
        case 6:
            text, truth = f"{own}\n{own.replace(str(n), str((n + 1) % 5))}", None
            material = ""  # or the first may be a quotation, and the second the judge's own
        case _:
            text, truth = rng.choice(["Score: {}-{}", "Score: {} or {}", "{} or {}", "Score: {},{}"]).format(n, m), None
    return text, truth, material, language


def test_of_ten_thousand_made_replies_none_is_read_wrong() -> None:
    rng, wrong, read_right, scores = Random(26), [], 0, 0
    began = time.process_time()
    for _reply in range(10_000):
        text, truth, material, language = made_reply(rng)
        reading = read(text, material=material, language=language, finish_reason="stop")
        if reading.score is not None and reading.score != truth:
            wrong.append((text, truth, reading.score, bool(material)))
        if truth is not None:
            scores += 1
            read_right += reading.score == truth
        assert reading.score is not None or reading.reason is not None, text
    assert wrong == [], len(wrong)
    assert read_right / scores > 0.75, "and most of the others are read"
    assert time.process_time() - began < 60


@pytest.mark.parametrize(
    "piece",
    [
        '"score":{',
        '"' + " " * 80,
        "score" + " " * 80,
        '"' + " " * 40 + "," + " " * 40,
        "I can't ",
        "抱歉",
        "<answer>4</answer>",
        "{}",
    ],
)
@pytest.mark.parametrize("head", ["", '{"score": 3, "rationale": "'])
def test_no_reply_takes_a_second_of_processor(piece: str, head: str) -> None:
    """The first took 2.9 s, the next three 1.0 to 1.1 s."""
    text = head + piece * (100_000 // len(piece)) + '", "score": 3}'
    began = time.process_time()
    read(text, finish_reason="stop")
    assert time.process_time() - began < 1


# --- stored and shown -------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
class TestShown:
    @pytest.mark.both_databases
    def test_call_run_api_and_export_say_why(self, cast: Cast, provider: RunningProvider) -> None:
        provider.control(next=["unparsable", "refusal", "truncated", "content_filter", "out_of_range", "wrong_keys"])
        run = started(cast, declared(cast), items=6)
        worked(run)
        progress = runs.run_progress(run)
        assert progress.verdicts == {"unparsed": 4, "refused": 4, "truncated": 2, "out_of_range": 2}
        assert sum(progress.reasons.values()) == 12 and progress.reasons["off_scale"] == 2
        assert not run.verdicts.filter(reason=None).exists()
        boris = cast.client("boris")
        verdict = run.verdicts.filter(reason__code="nothing").select_related("attempt").first()
        assert verdict is not None
        call = boris.get(reverse("call", args=["kassa", run.pk, verdict.attempt.call_id])).content.decode()
        assert "The reply names no score: “Well. That depends on whom you ask" in call
        assert "Read as: plain text" in call
        page = boris.get(reverse("run", args=["kassa", run.pk])).content.decode()
        assert "Why there is no score" in page and "No score named · 2" in page
        rows = boris.get(f"/api/v1/projects/kassa/verdicts/?run={run.pk}").json()["results"]
        assert all(row["reason"]["sentence"] and row["reason"]["rung"] for row in rows)
        detail = boris.get(f"/api/v1/projects/kassa/runs/{run.pk}/").json()
        assert detail["progress"]["reasons"] == progress.reasons
        table = exported_verdicts([run], names={run.pk: "Anna"})
        names = [column.name for column in table.columns]
        exported = [dict(zip(names, row, strict=True)) for row in table.rows]
        assert "reason" not in names, "an importer would take it for a rationale"
        assert {row["reason_code"] for row in exported} == {*progress.reasons}
        assert all(row["why_no_score"] and row["read_as"] for row in exported)

    def test_a_plain_refusal_is_refused_and_not_asked_again(self, cast: Cast, provider: RunningProvider) -> None:
        provider.control(next=["plain_refusal"])
        run = started(cast, declared(cast, repair=True), items=1)
        worked(run)
        assert {*run.verdicts.values_list("status", "reason__code")} == {("refused", "refusal")}
        assert provider.control()["requests"] == 1

    def test_a_provider_that_refuses_is_the_reason(self, cast: Cast, provider: RunningProvider) -> None:
        provider.control(next=["forbidden"])
        run = started(cast, declared(cast), items=1)
        worked(run)
        reason = run.verdicts.values_list("reason", flat=True)[0]
        assert reason["code"] == "not_answered" and "may not use the model" in reason_sentence(reason)
