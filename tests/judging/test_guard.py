"""The reply guard: every rule by a table in several languages, no alarm on clean turns, hostile turns end soon."""

from __future__ import annotations

import json
import time
import unicodedata
from pathlib import Path

import pytest

from judging.generation.drawing import draw_parameters
from judging.generation.guard import ROLE_CONFUSION, SETS_ASIDE, guard_answer, guard_conversation, guard_utterance
from judging.generation.problem_words import PROBLEM_LABELS, problem_sentence
from judging.generation.specs import parse_spec, preset
from judging.generation.user_agent import UTTERANCE_TOLD

SPEC = preset("simulated-users")
DRAWN = draw_parameters(SPEC, seed=3, number=1)
NFD = unicodedata.normalize("NFD", "Õhtul tuleb Jüri Mägi külla ja ma ei tea, mida süüa teha.")
CLEAN = {
    "ar": (
        "تعطل جهازي بعد أن وقع في الماء، هل يمكن إصلاحه في البيت؟",
        "هذا مزعج حقًا. هل أطفأته فورًا بعد أن وقع؟",
        "نعم، أطفأته وتركته يجف منذ أمس.",
    ),
    "en": (
        "My phone fell into the sink and won't turn on. Can it dry by itself?",
        "Oh no, that's annoying! Did you turn it off right away?",
        "Yes, and it has been lying on a towel since yesterday. As an AI, what would you do with it?",
    ),
    "es": (
        "Se me cayó el teléfono al agua y no enciende. ¿Se puede secar en casa?",
        "¡Qué faena! ¿Lo apagaste enseguida?",
        "Sí, lo apagué y lleva desde ayer encima de una toalla.",
    ),
    "et": (NFD, "Tore! Mida talle maitseb?", "Talle maitseb kõik, aga mul on kodus ainult kartulid ja muna."),
    "hi": (
        "मेरा फ़ोन पानी में गिर गया और चालू नहीं हो रहा। क्या यह घर पर सूख सकता है?",
        "ओह, यह तो बुरा हुआ! क्या आपने उसे तुरंत बंद किया?",
        "हाँ, कल से तौलिये पर रखा है और मैं इंतज़ार कर रही हूँ।",
    ),
    "ja": (
        "携帯を水に落としてしまい、電源が入りません。自然に乾くものでしょうか。",
        "それは困りましたね。すぐに電源を切りましたか。",
        "はい、昨日からタオルの上に置いています。友だちの手伝いに行く日なのに困りました。",
    ),
    "ru": (
        "Уронила телефон в воду, и теперь он не включается. Он сам высохнет?",
        "Как жаль! Вы сразу его выключили?",
        "Да, выключила, и со вчерашнего дня он лежит на полотенце.",
    ),
    "fi": (
        "Puhelimeni putosi veteen eikä käynnisty. Kuivuuko se itsestään?",
        "Voi harmi! Sammutitko sen heti?",
        "Sammutin, ja se on ollut pyyhkeen päällä eilisestä asti.",
    ),
}
"""A turn of the user, an answer, and the user's next turn."""
WRONG: dict[str, dict[str, str]] = {
    "inverted_role": {
        "ar": "مرحبًا! كيف يُمكنني أن أساعدك اليوم؟",
        "de": "Hallo! Wie kann ich dir heute helfen?",
        "en": "Thanks for sharing. Is there anything else I can help you with?",
        "es": "¡Hola! ¿En qué puedo ayudarte hoy?",
        "et": "Tere! Kuidas saan teid täna aidata?",
        "fi": "Hei! Kuinka voin auttaa sinua tänään?",
        "fr": "Bonjour ! Comment puis-je vous aider aujourd’hui ?",
        "hi": "नमस्ते! मैं आपकी कैसे मदद कर सकता हूँ?",
        "hu": "Szia! Miben segíthetek ma?",
        "it": "Ciao! Come posso aiutarti oggi?",
        "ja": "何かお手伝いできることはありますか。",
        "pt": "Olá! Como posso ajudar você hoje?",
        "ru": "Здравствуйте! Чем я могу вам помочь?",
        "zh": "您好，请问有什么可以帮您的吗？",
    },
    "fourth_wall": {
        "ar": "بصفتي نموذجًا لغويًا لا أملك هاتفًا.",
        "de": "Als KI habe ich leider kein Telefon.",
        "en": "As an AI language model I don't own a phone, so this is hard.",
        "es": "Como modelo de lenguaje no tengo teléfono.",
        "et": "Ma olen kõigest keelemudel ja telefoni mul ei ole.",
        "fi": "Olen vain kielimalli eikä minulla ole puhelinta.",
        "fr": "En tant qu’intelligence artificielle, je n’ai pas de téléphone.",
        "hi": "मैं सिर्फ़ एक एआई हूँ, मेरे पास फ़ोन नहीं है।".replace("सिर्फ़", "सिर्फ"),
        "hu": "Nyelvi modell vagyok, nincs telefonom.",
        "ja": "私はAIなので、電話は持っていません。",
        "pt": "Como modelo de linguagem, não tenho telefone.",
        "ru": "Я всего лишь языковая модель, и телефона у меня нет.",
        "zh": "作为一个人工智能，我没有手机。",
    },
    "comment": {
        "ar": "إليك الرسالة التالية: تعطل هاتفي أمس.",
        "en": "Sure! Here is the next message: My phone died yesterday.",
        "es": "Aquí tienes el mensaje: ayer se me rompió el móvil.",
        "et": "Siin on järgmine sõnum: mu telefon läks eile katki.",
        "ja": "以下が次のメッセージです：昨日、携帯が壊れました。",
        "ru": "Вот следующее сообщение: вчера сломался телефон.",
    },
    "role_label": {
        "ar": "المستخدم: تعطل هاتفي أمس.",
        "en": "**User:** My phone died yesterday.",
        "es": "Usuaria: ayer se me rompió el móvil.",
        "et": "Kasutaja: mu telefon läks eile katki.",
        "ja": "ユーザー：昨日、携帯が壊れました。",
    },
    "two_speakers": {
        "ar": "تعطل هاتفي أمس.\nالمساعد: هذا مؤسف.\nالمستخدم: نعم.",
        "en": "My phone died.\nAssistant: Oh no!\nUser: Yes, yesterday.",
        "es": "Usuario: se rompió.\nAsistente: ¡vaya!",
        "et": "Kasutaja: telefon läks katki.\nAssistent: Oi!",
        "ja": "ユーザー：壊れました。\nアシスタント：それは大変です。",
    },
    "quoted": {
        "ar": "«تعطل هاتفي أمس ولا أعرف ماذا أفعل»",
        "en": '"My phone died yesterday, what now?"',
        "es": "«Ayer se me rompió el móvil, ¿y ahora?»",
        "et": "„Mu telefon läks eile katki, mis nüüd saab?“",
        "ja": "「昨日、携帯が壊れました。」",
    },
    "reasoning": {
        "ar": "<think>يجب أن أكتب رسالة</think>تعطل هاتفي.",
        "en": "My phone died.</think>",
        "es": "<thinking>Debo escribir</thinking> Se rompió.",
        "et": "<reasoning>Mõtlen.</reasoning> Telefon läks katki.",
        "ja": "<think>考えます。</think>携帯が壊れました。",
    },
    "stop_mark": {
        "ar": "END_OF_DIALOGUE ثم أريد أن أسأل عن شيء",
        "en": "One more thing END_OF_DIALOGUE and then I go",
        "es": "Una cosa END OF DIALOGUE más, por favor",
        "et": "END_OF_DIALOGUE, aga veel üks asi",
        "ja": "END_OF_DIALOGUE、もう一つだけ聞きたいです",
    },
    "stand_in": {
        "ar": "اسمي [الاسم] وتعطل هاتفي أمس.",
        "en": "My name is [Name] and my phone died.",
        "es": "Me llamo [Nombre] y se me rompió el móvil.",
        "et": "Mina olen [Nimi] ja mu telefon läks katki.",
        "ja": "私は[名前]です。携帯が壊れました。",
    },
    "leaked_rubric": {
        "ar": '{"score": 1, "rationale": "طبيعي"} تعطل هاتفي',
        "en": 'My phone died. "rationale": "natural"',
        "es": '"score": 1. Se me rompió el móvil.',
        "et": 'Telefon läks katki. "verdict": "jah"',
        "ja": '携帯が壊れました。"score": 1',
    },
    "hidden_characters": {
        "ar": "تعطل \u202eهاتفي أمس.",
        "en": "My \u202ephone died.",
        "es": "Se \u2067rompió.",
        "et": "Telefon \x07läks katki.",
        "ja": "携帯が\u202e壊れました。",
    },
    "wrong_script": {
        "ar": "My phone fell into the water yesterday evening.",
        "en": "携帯電話を水に落としてしまい、電源が入りません。どうすればいいですか。",
        "es": "Вчера вечером мой телефон упал в воду.",
        "et": "Вчера вечером мой телефон упал в воду.",
        "ja": "My phone fell into the water yesterday evening.",
    },
    "mixed_script": {
        "ar": "تعطل هاتفي أمس بعد أن وقع في الماء ولا أعرف ماذا أفعل الآن. "
        "But maybe it will be dry again tomorrow. وأنا أنتظر منذ الصباح ولم يتغير شيء في هذا الجهاز القديم.",
        "en": "My phone fell into the water and I don't know what to do now. 携帯電話を水に落としてしまい、電源が入りません。"  # noqa: E501
        " So I wait for it to dry on a towel, since the shop is closed.",
        "et": "Mu telefon kukkus vette ja ma ei tea, mida nüüd teha. Телефон упал в воду вчера вечером. "
        "Ootan, et see rätiku peal ära kuivaks, sest pood on kinni.",
        "es": "Se me cayó el móvil al agua y no sé qué hacer ahora. Телефон упал в воду вчера вечером. "
        "Espero que se seque encima de la toalla, porque la tienda está cerrada.",
        "ja": "携帯電話を水に落としてしまい、電源が入りません。昨日からずっと待っているのに、まだ乾かないようで困っています。"  # noqa: E501
        "I really do not know what to do. 明日になったら、駅前の店に持って行って聞いてみようと思っています。",
    },
    "wrong_language": {
        "en": "Se me cayó el teléfono al agua y no enciende, pero no sé si se puede secar en casa para mañana.",
        "es": "My phone fell into the water and it is not on, can you tell me what I have to do with it?",
        "et": "Puhelimeni on kastunut ja se ei ole päällä, mutta en tiedä mitä nyt teen, kun kauppa on kiinni.",
        "fi": "Mu telefon kukkus vette ja see ei tööta, aga ma ei tea, mis nüüd saab, kui pood on kinni ja mul on kiire.",  # noqa: E501
        "ru": "Мій телефон упав у воду і не вмикається, але я не знаю, що з ним робити, як він з водою.",
    },
    "mixed_language": {
        "en": "My phone fell into the sink. No sé qué hacer y no quiero que se me rompa, pero es lo que hay para hoy. Help!",  # noqa: E501
        "es": "Se me cayó el móvil. I have no idea what to do with it and the shop is not open, can you help me? Gracias.",  # noqa: E501
        "et": "Mu telefon kukkus vette ja ma ei tea, mis nüüd saab. I think it is not on and the shop is closed for today.",  # noqa: E501
        "fi": "Puhelimeni putosi veteen eikä se ole päällä. I think it is the end of it and I have no idea what to do.",
        "de": "Mein Handy ist ins Wasser gefallen und ich weiß nicht, was ich machen soll. I think it is the end of it and I "  # noqa: E501
        "have no idea.",
    },
}
"""For each rule a turn of the user that breaks it, by language."""
CASES = [(code, language, text) for code, texts in WRONG.items() for language, text in texts.items()]


def _codes(language: str, utterance: str, **more: object) -> set[str]:
    turns = more.pop("turns", [])
    problems = guard_utterance(SPEC, DRAWN, language=language, turns=turns, utterance=utterance, **more)  # type: ignore[arg-type]
    for problem in problems:
        assert UTTERANCE_TOLD[problem.code] % problem.values
        assert problem.code in PROBLEM_LABELS and problem_sentence(problem.stored) != problem.code
    return {problem.code for problem in problems}


def _turns(language: str, count: int) -> list[dict[str, str]]:
    return [
        {"speaker": SPEC.rules.roles[number % 2], "text": text} for number, text in enumerate(CLEAN[language][:count])
    ]


@pytest.mark.parametrize(("code", "language", "text"), CASES, ids=[f"{code}-{language}" for code, language, _ in CASES])
def test_every_rule_is_found_broken(code: str, language: str, text: str) -> None:
    assert code in _codes(language, text)
    assert code in _codes(language, unicodedata.normalize("NFD", text)) or code == "quoted"


def test_every_rule_is_tried_in_five_languages() -> None:
    assert {code: len(texts) for code, texts in WRONG.items() if len(texts) < 5} == {}
    assert len({language for texts in WRONG.values() for language in texts}) >= 13


@pytest.mark.parametrize("language", CLEAN)
def test_clean_turns_pass(language: str) -> None:
    first, answer, later = CLEAN[language]
    assert _codes(language, first) == _codes(language, later, turns=_turns(language, 2)) == set()
    assert _codes(language, unicodedata.normalize("NFD", first)) == set()
    assert guard_answer(SPEC, language=language, turns=_turns(language, 1), answer=answer) == []
    assert guard_conversation(SPEC, language=language, turns=_turns(language, 3)) == []


def test_the_demos_dialogues_pass() -> None:
    """Every turn of 300 dialogues in five languages, the customer's as a user's and the agent's as an answer."""
    alarms, count = [], 0
    for path in sorted(Path("platform/panelbench/demo/content").glob("dialogues.*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            item = json.loads(line)
            turns: list[dict[str, str]] = []
            for turn in item["turns"]:
                if turn["speaker"] == "customer":
                    speaker = "user"
                    found = _codes(item["language"], turn["text"], turns=turns)
                else:
                    speaker = "assistant"
                    answered = guard_answer(SPEC, language=item["language"], turns=turns, answer=turn["text"])
                    found = {problem.code for problem in answered}
                alarms += [(item["id"], len(turns), code) for code in found - {"long_turn"}]
                turns.append({"speaker": speaker, "text": turn["text"]})
                count += 1
    assert count > 1_300 and alarms == []


@pytest.mark.parametrize("language", ["ar", "en", "et", "ja", "hi"])
def test_copies_repeats_lengths_and_empty_turns_are_found(language: str) -> None:
    first, answer, _later = CLEAN[language]
    turns = _turns(language, 2)
    assert _codes(language, unicodedata.normalize("NFD", first).upper(), turns=turns) == {"repeated_turn"}
    assert "repeated_turn" in _codes(language, answer, turns=turns) or len(answer) < 25, "an echo of the chatbot"
    assert "long_turn" in _codes(language, f"{first} " * 30)
    assert _codes(language, " \n ") == {"no_text"}
    assert _codes(language, first, finish_reason="length") == {"cut_off"}
    assert _codes(language, first, finish_reason="content_filter") == {"refusal"}
    assert "copied_brief" in _codes(language, f"{first} {DRAWN['scene']}")
    assert "stop_mark" in _codes(language, f"{first} END_OF_DIALOGUE", turns=turns), "too soon"
    later = [*turns, {"speaker": "user", "text": "?"}, {"speaker": "assistant", "text": "!"}]
    assert _codes(language, "OK. END_OF_DIALOGUE", turns=later) == set()
    assert _codes(language, "END_OF_DIALOGUE", turns=later) == set()


@pytest.mark.parametrize(
    "text", ["تعطل جهاز \u2066Samsung A5\u2069 أمس.", "كتب \u202bعلي \u2068(\u2066ok\u2069)\u2069\u202c لي\nأمس."]
)
def test_isolates_that_end_are_no_hidden_characters(text: str) -> None:
    assert _codes("ar", text) == set()
    assert guard_answer(SPEC, language="ar", turns=_turns("ar", 1), answer=text) == []
    for broken in (text.replace("\u2069", ""), text.replace("\u2069", "\u202c"), text.replace("أمس", "\u2069أمس")):
        assert "hidden_characters" in _codes("ar", broken)
    assert "hidden_characters" in _codes("ar", "تعطل \u2067جهازي\nأمس\u2069."), "each line ends its own"


def test_wide_characters_count_twice_in_copies_and_repeats() -> None:
    feedback = ["広告のように聞こえて、助言までしています。"]
    assert _codes("ja", f"ええと、{feedback[0]}", told=feedback) == {"leaked_rubric"}
    said, again = (
        "携帯を水に落としてしまい、電源が入らなくて困っています。",
        "携帯を水に落としてしまい、電源が入らなくて困っています！",
    )
    turns = [{"speaker": "user", "text": said}, {"speaker": "assistant", "text": "それは困りましたね。"}]
    assert _codes("ja", again, turns=turns) == {"repeated_turn"}


def test_what_was_told_about_a_try_must_not_come_back() -> None:
    told = ["The message sounds like an advertisement, and it gives advice."]
    assert _codes("en", f"Well. {told[0]}", told=told) == {"leaked_rubric"}
    assert _codes("en", "It sounds like an advertisement.", told=told) == set()


def test_the_scene_in_another_script_is_copied_too() -> None:
    levels = [
        {"value": "phone", "text": {"ja": "駅前の店で買った携帯電話を台所の水の中に落としてしまって困っている人です"}}
    ]
    stored = {**SPEC.stored, "parameters": [{"name": "scene", "levels": levels}], "templates": {"": "{scene}"}}
    spec, text = parse_spec(stored), levels[0]["text"]["ja"]  # type: ignore[index]
    problems = guard_utterance(spec, {"scene": "phone"}, language="ja", turns=[], utterance=f"{text}。どうしよう。")
    assert [problem.code for problem in problems] == ["copied_brief"]


@pytest.mark.parametrize(
    "utterance",
    [
        "I can't help with that request.",
        "I'm sorry, but I cannot assist with that.",
        "Lo siento, pero no puedo ayudar con esa solicitud.",
        "Я не могу помочь с этим запросом.",
    ],
)
def test_a_refusal_of_the_user_model_is_found(utterance: str) -> None:
    assert "refusal" in _codes("ru" if "я" in utterance else "es" if "puedo" in utterance else "en", utterance)


@pytest.mark.parametrize(
    ("language", "utterance"),
    [
        ("en", "I can't help my neighbour with the furniture, my back hurts."),
        ("en", "Good point, I will not judge the content of their character."),
        ("en", "Are you an AI? As an AI, do you ever get bored?"),
        ("en", "Let me know if you need more information about the trip."),
        ("en", "Is there something else I can do to resolve this?"),
        ("en", "My user name is AI: nobody believes me. Look at https://example.org/ai: it is there."),
        ("en", "I wrote to [mia@example.org](mailto:mia@example.org) and got no answer."),
        ("es", "Leí en talla G que en cuanto reciban la primera, le envían la nueva."),
        ("ja", "AIとして、あなたはどう思いますか。"),
        ("zh", "我是AI工程师，每天都很忙，想找点放松的办法。"),
        ("ar", "أنا هنا منذ الصباح ولم يصل الطبيب، ماذا أفعل؟"),
        ("hi", "क्या तुम मेरी मदद कर सकते हो? मुझे Brave New World पढ़नी है।"),
        ("et", "Kas sa saad mind aidata? Mul on vaja 26. novembriks kõne valmis saada."),
    ],
)
def test_what_people_write_is_no_alarm(language: str, utterance: str) -> None:
    assert _codes(language, utterance) == set()


HELP_FOR_A_THIRD_PERSON = {
    "ar": (
        "كيف يمكنني أن أساعد أختي؟",
        "كيف يمكنني مساعدته؟",
        "هل هناك شيء آخر أفعله لمساعدته؟",
        "كيف أستطيع أن أساعد جدتي في ترتيب البيت؟",
        "كيف يمكنني مساعدة جاري المريض؟",
        "أنا هنا لمساعدة أمي في المستشفى.",
        "أنا هنا لدعمها حتى تنجح.",
        "يسعدني أن أساعدها، لكن الوقت ضيق.",
        "أختي لا تتردد في السؤال أبدًا.",
        "هل تحتاج أمي إلى شيء آخر حتى أساعدها؟",
        "كيف أقدر أن أخدم أبي وهو بعيد؟",
        "كيف يمكنني مساعدتهم في الدراسة؟",
        "يسعدني مساعدة الجيران.",
    ),
    "de": (
        "Meine Eltern ziehen um. Wie kann ich ihnen helfen?",
        "Ich helfe ihnen gern, aber sie wohnen weit weg.",
        "Ich bin hier, um ihnen zu helfen, den Nachbarn meine ich.",
        "Kann ich ihnen noch mit etwas anderem helfen? Oma und Opa sagen ja nichts.",
        "Ich stehe ihnen gerne zur Verfügung, sie rufen aber nie an.",
        "Wie kann ich ihnen am besten helfen, meinen Schwestern?",
        "Wie kann ich meiner Mutter helfen?",
        "Wie kann ich ihm weiterhelfen?",
        "Kann ich ihnen sonst noch irgendwie helfen, den Kindern?",
        "Wie kann ich dem Verein behilflich sein?",
        "Ich bin da, um meiner Freundin zu helfen.",
        "Ich helfe meinem Bruder gern beim Umzug.",
    ),
    "en": (
        "How can I help your typical teenager to sleep more?",
        "How can I help young people in my street?",
        "I'm here to help my mum with her move.",
        "I'm here to support my sister at the hospital.",
        "Is there anything else I can help my father with?",
        "She should feel free to ask me, but she never does.",
        "I told my neighbour to feel free to reach out.",
        "How can I be of help to my grandmother?",
        "I'd be happy to help your colleague, he was nice to me.",
        "How can I support youth work here?",
        "I can help her with the move, but not on Sunday.",
    ),
    "es": (
        "¿Cómo puedo ayudar a mi hermana?",
        "Mi padre está triste. ¿Cómo puedo ayudarle?",
        "¿En qué puedo ayudar a los vecinos?",
        "Hola, ¿cómo puedo ayudarle a mi abuela con el móvil?",
        "Estoy aquí para ayudarle, pero ella no quiere.",
        "Estoy aquí para apoyarle en el hospital.",
        "¿Hay algo más en lo que le pueda ayudar a mi madre?",
        "Encantada de ayudarles, pero viven lejos.",
        "Con gusto le ayudo a mi vecina, si me deja.",
        "Quiero que mi hijo no dude en preguntar.",
        "¿Cómo le puedo ayudar a mi amigo?",
    ),
    "et": (
        "Ma hea meelega aitan oma venda kolimisel.",
        "Aitan hea meelega oma vanaema.",
        "Kuidas ma saan oma ema aidata?",
        "Kuidas saan vennale abiks olla?",
        "Olen siin, et isa aidata.",
        "Kas ma saan õele kuidagi abiks olla?",
        "Mu laps ei küsi julgelt abi.",
        "Hea meelega aitan naabreid, aga aega ei ole.",
        "Kuidas võiksin sõpra aidata?",
        "Ma aitan teda hea meelega.",
        "Kuidas ma saaksin talle kasulik olla?",
    ),
    "fi": (
        "Miten voin olla avuksi äidilleni?",
        "Kuinka voin auttaa isoäitiäni?",
        "Olen täällä auttamassa siskoani.",
        "Olen täällä auttaakseni veljeäni muutossa.",
        "Voinko olla avuksi jossain naapurille?",
        "Voinko auttaa jotenkin ystävääni?",
        "Autan mielelläni mummoa.",
        "Äiti on sairas. Miten voin auttaa?",
        "Miten voisin olla avuksi heille?",
        "Autan ilomielin, mutta en ehdi sunnuntaina.",
        "Miten voin palvella asiakkaitani paremmin?",
    ),
    "fr": (
        "Comment puis-je aider ma mère ?",
        "En quoi puis-je être utile à mes voisins ?",
        "Comment je peux aider mon frère à dormir ?",
        "Comment pourrais-je assister mon père ?",
        "Je suis là pour aider ma sœur.",
        "Mon fils n'hésite pas à demander de l'argent.",
        "Elle n'hésite pas à me demander conseil.",
        "Mon fils, lui, n'hésite pas à me demander de l'argent.",
        "Je serais ravie de l'aider, mais comment ?",
        "Comment puis-je lui être utile ?",
        "Bonjour, comment puis-je aider ma grand-mère ?",
    ),
    "hi": (
        "मैं अपनी बहन की कैसे मदद कर सकता हूँ?",
        "मुझे आपकी क्या मदद मिल सकती है?",
        "क्या मैं आपकी मदद ले सकता हूँ?",
        "मैं यहाँ आपकी मदद लेने आई हूँ।",
        "मैं यहाँ आपकी मदद के लिए आभारी हूँ।",
        "क्या मैं उनकी मदद कर सकती हूँ?",
        "मैं दादी की किस तरह सहायता करूँ?",
        "क्या मैं अपने भाई की मदद कर सकता हूँ?",
        "मैं यहाँ माँ की मदद करने के लिए हूँ।",
        "उसकी कैसे मदद करूँ?",
    ),
    "hu": (
        "Hogyan segíthetek neki?",
        "Miben segíthetek a nagymamámnak?",
        "Hogyan tudok neki segíteni?",
        "Azért vagyok itt, hogy segítsek a húgomnak.",
        "Segíthetek még valamiben anyukámnak?",
        "Hogyan lehetek a segítségére?",
        "Szívesen segítek nekik, csak messze laknak.",
        "Miben lehetek segítség a szomszédoknak?",
        "Hogyan segíthetek a barátomnak?",
        "Beteg az apám. Hogyan segíthetek?",
        "Örömmel segítek a bátyámnak.",
    ),
    "it": (
        "Mia madre è triste, come posso aiutarla?",
        "Come potrei aiutarla, la mia vicina?",
        "Come posso esserle utile? Parlo di mia zia.",
        "Sono qui per aiutarla, la nonna.",
        "Sono qui per aiutare mio fratello.",
        "Posso aiutarla con qualcosa, la mia amica?",
        "Mio figlio, lui, non esiti a chiedere.",
        "Gli ho detto di non esitare a chiedere.",
        "Sono qui per ascoltarla quando piange.",
        "Ciao, come posso aiutarla a dormire?",
        "Come posso aiutare i miei genitori?",
    ),
    "ja": (
        "祖母に何かお手伝いできることはあるかな。",
        "友達のお力になれればいいんだけど。",
        "祖母にお手伝いできることはありますか。",
        "先生のお手伝いをします。",
        "隣の人のお役に立てればうれしいです。",
        "母に何かお手伝いできればと思っています。",
        "友人のお力になれることがあれば教えてください。",
        "受付でどのようなご用件ですかと聞かれました。",
        "お気軽にご相談くださいと書いてありました。",
        "叔母の引っ越しをお手伝いします。",
        "父の店でお手伝いさせてもらっています。",
        "近所の方のお役に立てて嬉しかったです。",
    ),
    "pt": (
        "Como posso ajudar minha irmã?",
        "Minha mãe está triste. Como posso ajudar?",
        "Meu pai está doente, como posso lhe ajudar?",
        "Como posso ajudá-la? Ela não fala comigo.",
        "Estou aqui para ajudar minha avó.",
        "Estou aqui para lhe ajudar, vó, foi o que eu disse.",
        "Quero que ele não hesite em pedir ajuda.",
        "Fico feliz em ajudar meu vizinho.",
        "Em que posso auxiliar os meus pais?",
        "Posso lhe ajudar com alguma coisa? Minha tia não responde.",
        "Oi, como posso ajudar meu irmão?",
    ),
    "ru": (
        "Как я могу помочь сестре?",
        "Чем я могу ему помочь?",
        "Я здесь, чтобы помочь маме.",
        "Я тут, чтобы поддержать брата.",
        "Могу ли я ещё чем-то помочь бабушке?",
        "Могу я чем-нибудь им помочь?",
        "С радостью помогу соседям.",
        "Не обращайся так со мной, говорит он мне.",
        "Обращайся с ней осторожно, сказал врач.",
        "Папа болеет. Чем я могу помочь?",
        "Буду рада помочь подруге.",
    ),
    "zh": (
        "我怎么可以帮助我妹妹？",
        "有什么可以帮她的吗？",
        "我怎么能帮到爷爷？",
        "很高兴能帮他，可是我没时间。",
        "如何能够帮助邻居？",
        "我在这里帮助我的妈妈。",
        "我会支持她的决定。",
        "我让他随时告诉我结果。",
        "她可以随时问我，但她不问。",
        "还有什么可以为他们做的？",
        "乐意帮朋友搬家，就是腰疼。",
    ),
}
"""What people write who want to help somebody else than the chatbot."""
HELP_FOR_THE_ADDRESSEE = {
    "ar": (
        "أهلًا! كيف يمكنني مساعدتك؟",
        "أنا هنا لمساعدتك.",
        "هل هناك شيء آخر يمكنني أن أساعدك فيه؟",
        "لا تتردد في السؤال.",
    ),
    "de": ("Guten Tag, wie kann ich Ihnen heute helfen?", "Ich helfe Ihnen gern!", "Kann ich dir sonst noch helfen?"),
    "en": (
        "Hi there! How may I help?",
        "I am here to help you.",
        "How can I support you?",
        "So feel free, please feel free to ask.",
    ),
    "es": (
        "Buenos días, ¿en qué puedo ayudarle?",
        "¿Cómo te puedo ayudar?",
        "Estoy aquí para ayudarte.",
        "No dudes en preguntar.",
    ),
    "et": ("Aitan teid hea meelega.", "Hea meelega aitan sind!", "Küsi julgelt.", "Tere! Kuidas saan aidata?"),
    "fi": ("Miten voin olla sinulle avuksi?", "Autan sinua mielelläni.", "Hei! Miten voin olla avuksi?"),
    "fr": (
        "Comment est-ce que je peux t’aider ?",
        "Je suis là pour t'aider.",
        "N’hésitez pas à demander.",
        "Et n'hésite pas à me demander.",
    ),
    "hi": ("क्या मैं आपकी मदद कर सकता हूँ?", "मैं यहाँ आपकी मदद के लिए हूँ।", "मैं आपकी और क्या सहायता कर सकती हूँ?"),
    "hu": ("Miben segíthetek önnek?", "Szívesen segítek neked.", "Jó napot kívánok! Miben segíthetek?"),
    "it": (
        "Come posso aiutarLa?",
        "Buongiorno, come posso aiutarla oggi?",
        "Sono qui per ascoltarti.",
        "Non esitare a chiedere.",
    ),
    "ja": (
        "こんにちは。何かお手伝いできることはありますか。",
        "お客様のお力になれれば幸いです。",
        "どのようなご用件でしょうか。",
        "お気軽にご相談ください。",
    ),
    "pt": (
        "Oi! Em que posso ajudar?",
        "Como posso te ajudar hoje?",
        "Estou aqui para ajudar você.",
        "Não hesite em perguntar.",
    ),
    "ru": (
        "Чем могу помочь вам?",
        "Привет! Чем могу помочь?",
        "Я здесь, чтобы вас выслушать.",
        "Обращайтесь, если что.",
    ),
    "zh": ("很高兴能帮助您！", "请随时告诉我。", "我会帮助你。"),
}


@pytest.mark.parametrize("language", HELP_FOR_A_THIRD_PERSON)
def test_help_for_a_third_person_is_no_sign_of_a_chatbot(language: str) -> None:
    texts = [form for text in HELP_FOR_A_THIRD_PERSON[language] for form in (text, unicodedata.normalize("NFD", text))]
    assert [text for text in texts if "inverted_role" in _codes(language, text)] == []


@pytest.mark.parametrize("language", HELP_FOR_THE_ADDRESSEE)
def test_help_for_the_addressee_is_found(language: str) -> None:
    texts = HELP_FOR_THE_ADDRESSEE[language]
    assert [text for text in texts if "inverted_role" not in _codes(language, text)] == []


def test_a_chatbot_may_be_dull_and_may_refuse() -> None:
    turns = _turns("en", 1)
    for answer in (
        "As an AI, I can't help with that request. How can I help you today?",
        turns[0]["text"],
        "I'm here to help!",
        '"Yes."',
    ):
        assert guard_answer(SPEC, language="en", turns=turns, answer=answer) == []


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("", "no_text"),
        ("<think>Hm.</think>Dry it.", "reasoning"),
        ("Dry it. END_OF_DIALOGUE", "stop_mark"),
        ("Assistant: Dry it.", "role_label"),
        ("Dry it.\nUser: I did.\nAssistant: Good.", "two_speakers"),
        ("User: I did.", "two_speakers"),
        ("Let tone and content fit the mood of the user. Dry it.", "copied_brief"),
        ("Dry it. " * 600, "long_turn"),
        ("Dry\u202e it.", "hidden_characters"),
        ("携帯電話を水に落としたときは、すぐに電源を切って乾かしてください。", "wrong_script"),
        ("Se puede secar, pero no es lo que yo haría con el teléfono en casa, que no se te rompa.", "wrong_language"),
    ],
)
def test_what_is_no_answer_is_found(answer: str, code: str) -> None:
    problems = guard_answer(SPEC, language="en", turns=_turns("en", 1), answer=answer)
    assert code in {problem.code for problem in problems}
    assert (code in SETS_ASIDE) == any(problem.code in SETS_ASIDE for problem in problems)


def test_a_whole_conversation_is_looked_at_once_more() -> None:
    turns = _turns("et", 3)
    turns.append(
        {
            "speaker": "assistant",
            "text": "Kartulisalat maitseb ju kõigile. The eggs have to be boiled and that is all you have to do.",
        }
    )
    turns.append({"speaker": "user", "text": "Kuidas saan teid aidata?"})
    problems = guard_conversation(SPEC, language="et", turns=turns)
    assert [problem.code for problem in problems][:2] == ["mixed_language", "inverted_role"]
    assert problems[0].values["turn"] == 4 and problems[1].code in ROLE_CONFUSION


@pytest.mark.parametrize(
    "hostile",
    [
        "how can i " * 20_000,
        "user:" * 40_000,
        "[" * 100_000,
        "END_OF_" * 30_000,
        "<<<" * 50_000,
        "\u0300" * 100_000,
        "here is the " * 20_000,
        '"' * 100_000,
        "a. " * 40_000,
        "\ud800 broken",
    ],
)
def test_hostile_turns_end_soon(hostile: str) -> None:
    began = time.process_time()
    assert guard_utterance(SPEC, DRAWN, language="en", turns=_turns("en", 2), utterance=hostile)
    guard_answer(SPEC, language="en", turns=_turns("en", 1), answer=hostile)
    assert time.process_time() - began < 4
