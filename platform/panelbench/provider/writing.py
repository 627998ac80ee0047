"""The dialogues and texts that the simulated models write, when a request asks for one; and how they break the rules.

A request is recognised by the section that `judging.generation.messages` ends it with, so that it does not matter in
which form the reply is asked for. `planted_break` tells for each request whether its reply breaks a rule, and which:
a test that knows the requests knows the truth.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from panelbench.provider.answers import Completion, unit

_FORM: Final = re.compile(
    r"^# Form of the reply\n(?P<rules>.*?)^Reply with one JSON object[^\n]*\n(?P<form>\{[^\n]*\})",
    re.MULTILINE | re.DOTALL,
)
_LANGUAGE: Final = re.compile(r"^- Language: [^\n]*\(([A-Za-z0-9-]+)\)", re.MULTILINE)
_COUNT: Final = re.compile(r"^- Messages: (?:exactly (\d+)|from (\d+) to (\d+))\.", re.MULTILINE)
_SPEAKERS: Final = re.compile(r"^- Speakers: ([^\n]+)\.$", re.MULTILINE)
_STARTS: Final = re.compile(r"^- The first message is by: (\w+)\.", re.MULTILINE)
_GREETS: Final = re.compile(r"^- The first message of this speaker begins with a greeting: (\w+)\.", re.MULTILINE)
_SOURCE: Final = re.compile(r"^# Text to translate\n[^\n]*\n(\{[^\n]*\})$", re.MULTILINE)
_KEPT: Final = re.compile(
    r"\[[^\[\]\n]{1,41}\]|\{[^{}\n]{1,41}\}|<[^<>\n]{1,41}>|https?://[^\s<>\"'\])}]+|[\w.+-]+@[\w.-]+\w|\d[\d.,:/]*"
)
_FIELDS: Final = re.compile(r'"([^"]+)": <')

TRANSLATION_BREAKS: Final = (
    *("changed_role", "missing_part", "untranslated", "lost_placeholder", "lost_number", "wrong_length"),
)
"""The rules that only a translation can be made to break, and what is lost only if the source has it."""
BREAKS: Final = (
    *("unreadable", "refusal", "reasoning", "hidden_characters", "empty_turn", "unknown_role", "same_role"),
    *("wrong_count", "no_greeting", "wrong_script", "mixed_script", "wrong_language", "stand_in", "copied_brief"),
    *("repeated_turn", "cut_off"),
    *TRANSLATION_BREAKS,
)
"""The rules that a reply can be made to break, by the codes of `judging.generation.turn_rules`."""


@dataclass(frozen=True, slots=True)
class WritingRequest:
    """What a request asks for. With a ``source`` it is a translation; else without ``fields`` a dialogue."""

    language: str
    fields: tuple[str, ...] = ()
    count: int = 0
    speakers: tuple[str, ...] = ()
    starts: str = ""
    greets: str = ""
    brief: str = ""
    source: Mapping[str, Any] | None = None


def read_writing_request(body: Mapping[str, Any]) -> WritingRequest | None:
    """The request, if it asks for a dialogue or a text."""
    words = _told(body)
    form = _FORM.search(words)
    if form is None:
        return None
    language = _LANGUAGE.search(form["rules"])
    tag = language[1] if language else "en"
    if source := _SOURCE.search(words):
        return WritingRequest(tag, brief=words, source=json.loads(source[1]))
    if '"turns"' not in form["form"]:
        return WritingRequest(tag, tuple(_FIELDS.findall(form["form"])), brief=words)
    counted = _COUNT.search(form["rules"])
    speakers = _SPEAKERS.search(form["rules"])
    starts, greets = _STARTS.search(form["rules"]), _GREETS.search(form["rules"])
    return WritingRequest(
        language=tag,
        count=int(counted[1] or counted[2]) if counted else 4,
        speakers=tuple(speakers[1].split(", ")) if speakers else ("user", "assistant"),
        starts=starts[1] if starts else "",
        greets=greets[1] if greets else "",
        brief=words,
    )


def planted_break(body: Mapping[str, Any], rates: Mapping[str, float], seed: int) -> str:
    """The rule that the reply to this request breaks; empty for none. Another seed in the request is another draw."""
    draw = unit("break", str(seed), str(body.get("model")), str(body.get("seed")), _told(body))
    for code, share in rates.items():
        if (draw := draw - share) < 0:
            return code
    return ""


def _told(body: Mapping[str, Any]) -> str:
    contents = [message.get("content") or "" for message in body.get("messages", []) if isinstance(message, dict)]
    return "\n".join(
        content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)
        for content in contents
    )


def compose_writing(request: WritingRequest, *, model: str, rng: Random, broken: str = "") -> Completion:
    """What a model writes, with the named rule broken. ``sim-flawed`` writes carelessly, ``sim-chatty`` at length."""
    match broken:
        case "refusal":
            return Completion("I'm sorry, but I can't help with that.")
        case "unreadable":
            return Completion(json.dumps({"result": "simulated", "lines": 3}))
    content = _composed(request, model, rng, broken)
    if broken == "reasoning":
        return Completion(f"<think>Simulated thoughts about the {request.language} text.</think>\n{content}")
    return Completion(content[: len(content) // 2], "length") if broken == "cut_off" else Completion(content)


def _composed(request: WritingRequest, model: str, rng: Random, broken: str) -> str:
    own = request.language.partition("-")[0]
    language = {"wrong_script": "en" if own in _OTHER_SCRIPTS else "ar", "wrong_language": _NEIGHBOUR.get(own, "et")}
    phrases = PHRASES.get(language.get(broken, own), PHRASES["en"])
    if request.source is not None:
        return json.dumps(_translated(request.source, request, phrases, rng, broken), ensure_ascii=False)
    if request.fields:
        texts = _texts(request, phrases, model, rng)
        first = next(iter(texts))
        texts[first] = _spoilt(texts[first], request, broken, phrases)
        return json.dumps(texts, ensure_ascii=False)
    turns = _dialogue(request, phrases, model, rng)
    last = turns[-1]
    others = [turn for turn in turns[1:-1] if turn["speaker"] != request.greets] or turns[:1]
    match broken:
        case "wrong_count":
            turns.pop()
        case "same_role":
            last["speaker"] = turns[-2]["speaker"] if len(turns) > 1 else last["speaker"]
        case "unknown_role":
            last["speaker"] = "narrator"
        case "empty_turn":
            others[0]["text"] = ""
        case "repeated_turn":
            last["text"] = turns[-3]["text"] if len(turns) > 2 else last["text"]
        case "no_greeting":
            greeted = next((turn for turn in turns if turn["speaker"] == request.greets), turns[0])
            greeted["text"] = phrases["asks"][0].format(number=rng.randint(100, 999))
        case _:
            others[0]["text"] = _spoilt(others[0]["text"], request, broken, phrases)
    return json.dumps({"turns": turns}, ensure_ascii=False)


def _translated(
    source: Mapping[str, Any], request: WritingRequest, phrases: Mapping[str, Any], rng: Random, broken: str
) -> dict[str, Any]:
    """A text of the same structure and about the same length: its numbers, placeholders and addresses are kept."""

    def translated(value: Any) -> Any:
        return [_twin(text, phrases, rng) for text in value] if isinstance(value, list) else _twin(value, phrases, rng)

    turns = [{"speaker": turn["speaker"], "text": translated(turn["text"])} for turn in source.get("turns", ())]
    whole: dict[str, Any] = {**({"turns": turns} if turns else {})}
    whole |= {name: translated(value) for name, value in source.items() if name != "turns"}
    name = next(name for name in whole if name != "turns") if not turns else ""
    original = source["turns"][0]["text"] if turns else source[name]
    spoilt = turns[0]["text"] if turns else whole[name]
    match broken:
        case "wrong_count" if turns:
            turns.pop()
        case "changed_role" if turns:
            turns[0]["speaker"] = "narrator"
        case "untranslated":
            spoilt = original
        case "missing_part" | "empty_turn":
            spoilt = ""
        case "wrong_length" if isinstance(original, str):
            spoilt = f"{spoilt} " * (6 + 3 * len(json.dumps(source, ensure_ascii=False)) // max(1, len(spoilt)))
        case "lost_number" | "lost_placeholder" if isinstance(spoilt, str):
            spoilt = _KEPT.sub("", spoilt)
        case _ if isinstance(spoilt, str):
            spoilt = _spoilt(spoilt, request, broken, phrases)
    if turns:
        turns[0]["text"] = spoilt
    else:
        whole[name] = spoilt
    return whole


def _twin(text: str, phrases: Mapping[str, Any], rng: Random) -> str:
    if not text.strip():
        return text
    kept = _KEPT.findall(text)
    space = str(phrases["space"])
    sentences = [part for name in ("opens", "tells", "asks", "ends") for part in phrases[name]]
    words: list[str] = []
    needed = max(1, round(len(text) * (0.45 if not space else 1)) - sum(map(len, kept)))
    while len(space.join(words)) < needed:
        sentence = rng.choice(sentences).format(number="", name=phrases["names"][0])
        for word in sentence.split() if space else sentence:
            if len(space.join(words)) < needed:
                words.append(word)
    return space.join(words) + "".join(f" {part}" for part in kept)


def _dialogue(request: WritingRequest, phrases: Mapping[str, Any], model: str, rng: Random) -> list[dict[str, str]]:
    roles = request.speakers
    greeter = request.greets or roles[-1]
    first = request.starts or next((role for role in roles if role != greeter), roles[0])
    order = [role for role in roles if role == first] + [role for role in roles if role != first]
    name = rng.choice(phrases["names"])
    numbers = rng.sample(range(1_000, 9_999), request.count + 1)
    shuffled = {part: rng.sample(phrases[part], len(phrases[part])) for part in ("opens", "tells", "asks", "ends")}
    turns: list[dict[str, str]] = []
    for place in range(request.count):
        speaker = order[place % len(order)]
        part = "asks" if speaker == greeter else "tells"
        before = [turn for turn in turns if turn["speaker"] == speaker]
        text = shuffled[part][len(before) % len(shuffled[part])]
        if speaker == greeter and not before:
            text = f"{rng.choice(phrases['greets'])}{phrases['space']}{text}"
        elif place == 0:
            text = shuffled["opens"][0]
        elif place == request.count - 1 and speaker == greeter:
            text = shuffled["ends"][0]
        turns.append({"speaker": speaker, "text": _in_style(text.format(number=numbers[place], name=name), model)})
    return turns


def _texts(request: WritingRequest, phrases: Mapping[str, Any], model: str, rng: Random) -> dict[str, str]:
    texts = {}
    for name in request.fields:
        sentences = rng.sample([*phrases["asks"], *phrases["tells"], *phrases["ends"]], 4)
        written = phrases["space"].join(sentences).format(number=rng.randint(1_000, 9_999), name=phrases["names"][0])
        texts[name] = _in_style(written, model)
    return texts


def _in_style(text: str, model: str) -> str:
    if model == "sim-flawed":
        return text[:1].lower() + text[1:].rstrip(".!?。؟।") + (" ,," if len(text) % 3 == 0 else "")
    return f"{text} {text[-1] * 2}" if model == "sim-chatty" and len(text) % 5 == 0 else text


def _spoilt(text: str, request: WritingRequest, broken: str, phrases: Mapping[str, Any]) -> str:
    own = request.language.partition("-")[0]
    match broken:
        case "hidden_characters":
            return f"{text[:3]}\u202e{text[3:]}"
        case "stand_in":
            return f"{text} [{phrases['names'][0]}]"
        case "mixed_script":
            stranger = PHRASES["en" if own in _OTHER_SCRIPTS else "ar"]
            return str(stranger["tells"][0]).format(number=77)
        case "copied_brief":
            sentences = [part.strip() for part in re.split(r"[.!?\n:]", request.brief.partition("# Form")[0])]
            return f"{max(sentences, key=len)}. {text}"
    return text


_OTHER_SCRIPTS: Final = frozenset({"ar", "hi", "ja"})
_NEIGHBOUR: Final = {"et": "fi", "fi": "et", "ar": "ar", "hi": "hi", "ja": "ja", "en": "es"}

PHRASES: Final[dict[str, dict[str, Any]]] = {
    "en": {
        "space": " ",
        "names": ["Mary O'Hara", "Tom Pierce", "Lydia Shaw"],
        "opens": [
            "My order {number} has not arrived, and I need it before the weekend.",
            "I was charged twice for order {number} and would like to know why.",
            "I want to change the address for parcel {number}, but the page does not let me.",
        ],
        "greets": ["Hello {name}, thank you for writing to us.", "Good morning {name}, I am happy to help you."],
        "tells": [
            "I placed it on the third, and the number on my bill is {number}.",
            "That is not what your website says; it showed me {number} this morning.",
            "Yes, I have the letter with the code {number} here in front of me.",
            "I would rather have it sent to house number {number} in the same street.",
        ],
        "asks": [
            "Could you tell me whether the number {number} is on your bill?",
            "I have looked at entry {number} and can see what went wrong.",
            "I am sorry about this. I have opened case {number} for you.",
            "Let me check with the warehouse, they keep it under {number}.",
        ],
        "ends": [
            "It is settled now, and you will get a message about case {number} today.",
            "Thank you for your patience. Please keep the number {number} for later.",
        ],
    },
    "et": {
        "space": " ",
        "names": ["Mari Õunapuu", "Jüri Käär", "Liis Mägi"],
        "opens": [
            "Minu tellimus {number} ei ole ikka veel kohale jõudnud ja mul on seda nädalavahetuseks vaja.",
            "Tellimuse {number} eest võeti raha kaks korda ja ma tahaksin teada, miks.",
            "Soovin muuta paki {number} aadressi, aga leht ei luba mul seda teha.",
        ],
        "greets": ["Tere, {name}! Aitäh, et meile kirjutasite.", "Tere päevast, {name}! Aitan teid hea meelega."],
        "tells": [
            "Tellisin selle kolmandal kuupäeval ja arvel on number {number}.",
            "See ei ole see, mida teie leht ütleb; hommikul oli seal {number}.",
            "Jah, mul on kiri koodiga {number} siin ees.",
            "Pigem võiks selle saata sama tänava majja number {number}.",
        ],
        "asks": [
            "Kas oskate öelda, kas teie arvel on number {number}?",
            "Vaatasin kirjet {number} ja näen nüüd, mis läks valesti.",
            "Mul on sellest kahju. Avasin teie jaoks juhtumi {number}.",
            "Küsin kohe laost järele, neil on see numbri {number} all.",
        ],
        "ends": [
            "Nüüd on see korras ja saate juhtumi {number} kohta täna teate.",
            "Täname kannatlikkuse eest. Palun jätke number {number} meelde.",
        ],
    },
    "es": {
        "space": " ",
        "names": ["María Núñez", "Andrés Peña", "Lucía Ibáñez"],
        "opens": [
            "Mi pedido {number} no ha llegado y lo necesito antes del fin de semana.",
            "Me han cobrado dos veces el pedido {number} y quiero saber por qué.",
            "Quiero cambiar la dirección del paquete {number}, pero la página no me deja.",
        ],
        "greets": ["Hola, {name}, gracias por escribirnos.", "Buenos días, {name}, le ayudo con mucho gusto."],
        "tells": [
            "Lo pedí el día tres y el número de mi factura es el {number}.",
            "Eso no es lo que dice su página; esta mañana ponía {number}.",
            "Sí, tengo aquí la carta con el código {number}.",
            "Prefiero que lo manden al número {number} de la misma calle.",
        ],
        "asks": [
            "¿Me puede decir si en su factura está el número {number}?",
            "He mirado el registro {number} y ya veo lo que ha pasado.",
            "Lo siento mucho. He abierto el caso {number} para usted.",
            "Voy a preguntar en el almacén, allí lo tienen con el número {number}.",
        ],
        "ends": [
            "Ya está resuelto y hoy recibirá un mensaje sobre el caso {number}.",
            "Gracias por su paciencia. Por favor, guarde el número {number}.",
        ],
    },
    "ja": {
        "space": "",
        "names": ["山田花子様", "佐藤健様", "鈴木美咲様"],
        "opens": [
            "注文番号{number}の商品がまだ届きません。週末までに必要です。",
            "注文{number}の代金が二回引き落とされました。理由を教えてください。",
            "荷物{number}の届け先を変えたいのですが、画面で変更できません。",
        ],
        "greets": ["{name}、こんにちは。ご連絡ありがとうございます。", "{name}、お世話になっております。"],
        "tells": [
            "三日に注文しました。請求書の番号は{number}です。",
            "サイトの説明と違います。今朝は{number}と出ていました。",
            "はい、番号{number}が書かれた手紙が手元にあります。",
            "できれば同じ通りの{number}番地に送ってほしいです。",
        ],
        "asks": [
            "請求書に{number}という番号があるか教えていただけますか。",
            "記録{number}を確認し、原因が分かりました。",
            "ご不便をおかけして申し訳ございません。受付番号{number}で承りました。",
            "倉庫に問い合わせます。倉庫での番号は{number}です。",
        ],
        "ends": [
            "手続きが終わりました。受付{number}について本日中にお知らせします。",
            "お待たせいたしました。番号{number}を控えておいてください。",
        ],
    },
    "ar": {
        "space": " ",
        "names": ["مريم الحداد", "سامي نجار", "ليلى منصور"],
        "opens": [
            "لم يصل طلبي رقم {number} حتى الآن وأحتاج إليه قبل نهاية الأسبوع.",
            "خُصم ثمن الطلب {number} مرتين وأريد أن أعرف السبب.",
            "أريد تغيير عنوان الطرد {number} لكن الصفحة لا تسمح لي بذلك.",
        ],
        "greets": ["مرحبًا {name}، شكرًا لأنك كتبت إلينا.", "صباح الخير {name}، يسعدني أن أساعدك."],
        "tells": [
            "طلبته في اليوم الثالث والرقم في فاتورتي هو {number}.",
            "هذا ليس ما يقوله موقعكم، فقد ظهر لي {number} هذا الصباح.",
            "نعم، الرسالة التي فيها الرمز {number} أمامي الآن.",
            "أفضل أن يُرسل إلى المنزل رقم {number} في الشارع نفسه.",
        ],
        "asks": [
            "هل يمكنك أن تخبرني إن كان الرقم {number} في فاتورتك؟",
            "راجعت السجل {number} وعرفت الآن ما الذي حدث.",
            "أعتذر عن ذلك. فتحت لك الحالة رقم {number}.",
            "سأسأل المخزن فهو محفوظ عندهم تحت الرقم {number}.",
        ],
        "ends": [
            "تم حل المشكلة وستصلك اليوم رسالة عن الحالة {number}.",
            "شكرًا على صبرك. احتفظ من فضلك بالرقم {number}.",
        ],
    },
    "fi": {
        "space": " ",
        "names": ["Aino Mäkinen", "Eero Väisänen", "Päivi Hämäläinen"],
        "opens": [
            "Tilaukseni {number} ei ole vieläkään tullut, ja tarvitsen sen ennen viikonloppua.",
            "Tilauksesta {number} veloitettiin kaksi kertaa, ja haluaisin tietää miksi.",
            "Haluan muuttaa paketin {number} osoitteen, mutta sivu ei anna tehdä sitä.",
        ],
        "greets": ["Hei {name}, kiitos viestistäsi.", "Hyvää päivää {name}, autan mielelläni."],
        "tells": [
            "Tilasin sen kolmas päivä, ja laskussa on numero {number}.",
            "Sivustollanne sanotaan muuta; aamulla siinä luki {number}.",
            "Kyllä, minulla on tässä kirje, jossa on koodi {number}.",
            "Mieluummin sen voisi lähettää saman kadun taloon {number}.",
        ],
        "asks": [
            "Voitteko kertoa, onko laskussa numero {number}?",
            "Katsoin kirjausta {number} ja näen nyt, mikä meni vikaan.",
            "Olen pahoillani. Avasin teille tapauksen {number}.",
            "Kysyn varastosta, heillä se on numerolla {number}.",
        ],
        "ends": [
            "Asia on nyt kunnossa, ja saatte tänään viestin tapauksesta {number}.",
            "Kiitos kärsivällisyydestä. Pitäkää numero {number} tallessa.",
        ],
    },
    "hu": {
        "space": " ",
        "names": ["Kovács Ágnes", "Nagy Béla", "Szűcs Éva"],
        "opens": [
            "A {number} számú rendelésem még nem érkezett meg, és a hétvége előtt kellene.",
            "A {number} rendelést kétszer terhelték, és szeretném tudni, hogy miért.",
            "Meg szeretném változtatni a {number} csomag címét, de az oldal nem engedi.",
        ],
        "greets": ["Jó napot, {name}! Köszönöm, hogy írt nekünk.", "Üdvözlöm, {name}! Szívesen segítek."],
        "tells": [
            "Harmadikán rendeltem, és a számlán a {number} szám áll.",
            "Az oldalukon nem ez van; ma reggel még {number} állt ott.",
            "Igen, itt van előttem a levél a {number} kóddal.",
            "Inkább ugyanabba az utcába, a {number} számú házba kérném.",
        ],
        "asks": [
            "Meg tudná mondani, hogy a {number} szám szerepel-e a számlán?",
            "Megnéztem a {number} bejegyzést, és már látom, hogy mi történt.",
            "Nagyon sajnálom. Megnyitottam önnek a {number} ügyet.",
            "Megkérdezem a raktárat, ott a {number} szám alatt van.",
        ],
        "ends": [
            "Az ügy rendben van, és ma üzenetet kap a {number} ügyről.",
            "Köszönöm a türelmét. Kérem, őrizze meg a {number} számot.",
        ],
    },
    "hi": {
        "space": " ",
        "names": ["मीना शर्मा", "रवि वर्मा", "सुनीता जोशी"],
        "opens": [
            "मेरा ऑर्डर {number} अभी तक नहीं आया है और मुझे सप्ताहांत से पहले चाहिए।",
            "ऑर्डर {number} के पैसे दो बार कट गए और मैं कारण जानना चाहती हूँ।",
            "मैं पार्सल {number} का पता बदलना चाहता हूँ, पर पेज पर यह नहीं हो रहा।",
        ],
        "greets": ["नमस्ते {name} जी, हमें लिखने के लिए धन्यवाद।", "नमस्कार {name} जी, मैं आपकी मदद करूँगी।"],
        "tells": [
            "मैंने तीन तारीख को ऑर्डर किया था और बिल पर संख्या {number} है।",
            "आपकी वेबसाइट पर ऐसा नहीं लिखा है, सुबह वहाँ {number} दिख रहा था।",
            "हाँ, कोड {number} वाली चिट्ठी मेरे सामने है।",
            "बेहतर होगा कि इसे उसी सड़क के मकान {number} पर भेजें।",
        ],
        "asks": [
            "क्या आप बता सकते हैं कि बिल पर संख्या {number} है या नहीं?",
            "मैंने प्रविष्टि {number} देखी और अब समझ गई कि क्या हुआ।",
            "इसके लिए खेद है। मैंने आपके लिए मामला {number} खोल दिया है।",
            "मैं गोदाम से पूछती हूँ, वहाँ यह संख्या {number} पर है।",
        ],
        "ends": [
            "अब यह ठीक है और मामले {number} का संदेश आपको आज मिल जाएगा।",
            "आपके धैर्य के लिए धन्यवाद। कृपया संख्या {number} संभालकर रखें।",
        ],
    },
}
"""For each language: what a customer opens with and tells, and how an agent greets, asks and ends."""
