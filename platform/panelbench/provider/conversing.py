"""The simulated sides of a simulated conversation: the user, the chatbot and the judge of the user's turns.

A request is recognised by what `judging.generation.user_agent` and the rubric of user turns write in it. By
`planted_turn_break` a test that knows the requests knows which replies break a rule, and which turns the judge refuses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Final, Literal

from panelbench.provider.answers import Completion, unit

Step = Literal["utterance", "answer", "verdict"]
TURN_BREAKS: Final[dict[str, tuple[str, ...]]] = {
    "utterance": (
        *("inverted_role", "fourth_wall", "copied_brief", "repeated_turn", "reasoning", "mixed_language"),
        *(
            "wrong_script",
            "role_label",
            "two_speakers",
            "quoted",
            "comment",
            "stand_in",
            "stop_mark",
            "cut_off",
            "refusal",
        ),
    ),
    "answer": ("wrong_script", "wrong_language", "mixed_language", "reasoning", "two_speakers", "stop_mark", "cut_off"),
    "verdict": ("refused", "unread"),
}
"""By step, the rules that a reply can be made to break, by the codes of `judging.generation.guard`; a verdict
``refused`` is one that refuses the turn."""
_UTTERANCE: Final = re.compile(
    r"^Write the (?:first|next) message of this person and nothing else\.\s*\Z", re.MULTILINE
)
_LANGUAGE: Final = re.compile(r"^- Language: [^\n]*\(([A-Za-z0-9-]+)\), from the first word", re.MULTILINE)
_STOP: Final = re.compile(r"^- To end the conversation, close your last message with (\w+)", re.MULTILINE)
_TURN: Final = re.compile(r"<<<TURN \w+ \d+ (\w+)>>>\n(.*?)(?=\n<<<)", re.DOTALL)
_SCENE: Final = re.compile(r"^# The scene\n(.*?)\n\n#", re.MULTILINE | re.DOTALL)
_CRITERION: Final = "user_role"
"""The criterion by which the rubric of user turns is known."""
_STOPS: Final = 0.12
"""The share of the user's turns, where one may end the conversation, that do."""


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """A request for a turn, or for a verdict about one. ``said``: the turns before; ``stop``: the mark of the end,
    where it may stand; ``scene``: what is told about the user; ``criteria``: of a verdict."""

    step: Step
    language: str = ""
    said: tuple[str, ...] = ()
    stop: str = ""
    scene: str = ""
    criteria: tuple[str, ...] = ()


def read_turn_request(body: Mapping[str, Any]) -> TurnRequest | None:
    """The request, if it belongs to a simulated conversation."""
    messages = [message for message in body.get("messages", []) if isinstance(message, dict)]
    words = [_content(message) for message in messages]
    if not words:
        return None
    last = words[-1]
    if _UTTERANCE.search(last):
        language, stop, scene = _LANGUAGE.search(last), _STOP.search(last), _SCENE.search(last)
        return TurnRequest(
            step="utterance",
            language=language[1] if language else "en",
            said=tuple(text for _speaker, text in _TURN.findall(last)),
            stop=stop[1] if stop else "",
            scene=scene[1] if scene else "",
        )
    schema = ((body.get("response_format") or {}).get("json_schema") or {}).get("schema") or {}
    if tools := body.get("tools"):
        schema = tools[0]["function"]["parameters"]
    asked = tuple(schema.get("properties", {})) or tuple(re.findall(r'"(\w+)": \{"rationale"', "\n".join(words)))
    if _CRITERION in asked:
        return TurnRequest(step="verdict", said=tuple(text for _speaker, text in _TURN.findall(last)), criteria=asked)
    is_talk = len(messages) > 1 and messages[0].get("role") == "system" and messages[-1].get("role") == "user"
    if is_talk and not schema and not asked and "<<<BEGIN" not in last and "chatbot" in words[0].casefold():
        # The language of the talk whose phrases share most pieces of three letters with a text.
        pieces = {*_pieces(" ".join(words[1:]))}
        return TurnRequest(
            step="answer", language=max(TALK, key=lambda tag: len(pieces & _PIECES[tag])), said=tuple(words[1:])
        )
    return None


def planted_turn_break(
    body: Mapping[str, Any], rates: Mapping[str, Mapping[str, float]], seed: int, again: int = 0
) -> tuple[str, str]:
    """The step of a request, and the rule that its reply breaks; empty for none. ``again``: how often a reply to the
    same request, without a seed, came before."""
    asked = read_turn_request(body)
    if asked is None:
        return "", ""
    told = "\n".join(_content(message) for message in body["messages"] if isinstance(message, dict))
    draw = unit("turn", asked.step, str(seed), str(body.get("model")), str(body.get("seed")), str(again), told)
    for code, share in rates.get(asked.step, {}).items():
        if (draw := draw - share) < 0:
            return asked.step, code
    return asked.step, ""


def compose_turn(asked: TurnRequest, *, rng: Random, broken: str = "") -> Completion:
    """The reply to a request of a conversation, with the named rule broken."""
    if asked.step == "verdict":
        return _verdict(asked, rng, broken)
    if broken == "refusal":
        return Completion("I'm sorry, but I can't help with that request.")
    own = asked.language.partition("-")[0]
    talk = TALK.get(own, TALK["en"])
    text = _turn(asked, talk, rng)
    if asked.stop and not broken and rng.random() < _STOPS:
        return Completion(f"{text} {asked.stop}")
    if broken == "cut_off":
        return Completion(text[: len(text) // 2], "length")
    return Completion(_broken(text, asked, own if own in TALK else "en", broken) if broken else text)


def _turn(asked: TurnRequest, talk: Mapping[str, Any], rng: Random) -> str:
    """Two sentences that were not said in this order before; the first turn of a user has one that opens."""
    if asked.step == "utterance" and not asked.said:
        return str(rng.choice(talk["opens"])).format(thing=rng.choice(talk["things"]))
    first, second = ("reacts", "adds") if asked.step == "utterance" else ("answers", "returns")
    pairs = [(one, other) for one in talk[first] for other in talk[second]]
    rng.shuffle(pairs)
    said = "\n".join(asked.said)
    fresh = [pair for pair in pairs if pair[0] not in said and pair[1] not in said]
    one, other = (fresh or [pair for pair in pairs if not all(part in said for part in pair)] or pairs)[0]
    return f"{one}{talk['space']}{other}"


def _broken(text: str, asked: TurnRequest, own: str, broken: str) -> str:
    talk = TALK[own]
    stranger = TALK["es" if own == "en" else "en"]
    foreign = f"{stranger['reacts'][0]} {stranger['sure']}"
    told = [part.strip() for part in re.split(r"[.!?\n:]", asked.scene)]
    script = TALK["ja" if own not in ("ja", "ar") else "en"]
    return {
        "inverted_role": str(talk["helps"]),
        "fourth_wall": f"{text}{talk['space']}{talk['is_ai']}",
        "copied_brief": f"{text} {max(told, key=len)}.",
        "repeated_turn": asked.said[0] if asked.said else text,
        "reasoning": f"<think>Simulated thoughts.</think>\n{text}",
        "mixed_language": f"{text} {foreign}",
        "wrong_language": f"{foreign} {stranger['sure']}",
        "wrong_script": str(script["opens"][0]).format(thing="A"),
        "role_label": f"User: {text}",
        "two_speakers": f"{text}\nAssistant: {text}\nUser: {text}",
        "quoted": f"“{text}”",
        "comment": f"Here is the next message: {text}",
        "stand_in": f"{text} [Name]",
        "stop_mark": f"END_OF_DIALOGUE {text}",
    }[broken]


def _verdict(asked: TurnRequest, rng: Random, broken: str) -> Completion:
    if broken == "unread":
        return Completion("Well. That depends on whom you ask, doesn't it?")
    failed = rng.choice(asked.criteria) if broken == "refused" else ""
    given = {
        criterion: {
            "rationale": "Simulated: not what a person would write." if criterion == failed else "Simulated: fine.",
            "score": 0 if criterion == failed else 1,
        }
        for criterion in asked.criteria
    }
    return Completion(json.dumps(given))


def _content(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def _pieces(text: str) -> Iterator[str]:
    folded = text.casefold()
    return (folded[start : start + 3] for start in range(len(folded) - 2))


TALK: Final[dict[str, dict[str, Any]]] = {
    "en": {
        "space": " ",
        "things": ["bicycle", "old clock", "garden", "violin", "kettle", "map"],
        "opens": [
            "I got my {thing} from my aunt last week and have no idea where to begin with it.",
            "Does anybody really need a {thing} these days, or am I just sentimental?",
            "My {thing} has been in the hall since Sunday, and I keep walking around it.",
            "What would be the first thing to do with a {thing} that nobody has used for years?",
            "Everyone at home laughs about my {thing}, and I would like to prove them wrong.",
        ],
        "reacts": [
            "That sounds easier than I thought.",
            "Hm, my brother says the very opposite.",
            "I tried that yesterday, and it was a mess.",
            "Funny, it never crossed my mind.",
            "Well, the weather is not on my side this week.",
            "Good to hear, because I was close to quitting.",
            "Not sure that works in a small flat.",
            "My grandmother did it just like that.",
            "All right, so patience is the trick.",
            "It took me the whole evening.",
        ],
        "adds": [
            "How long does it take until one sees a change?",
            "And what does it cost, more or less?",
            "Maybe I should wait until Saturday.",
            "The neighbours will hear me, I am afraid.",
            "Is there a book about it that a beginner understands?",
            "My hands still hurt from the last time.",
            "I would rather begin with something small.",
            "Which of the two would be safer?",
            "Next to the window there is still a little space.",
            "The children want to join, too.",
        ],
        "answers": [
            "Oh, that has a nice ring to it!",
            "Small steps are usually the best ones here.",
            "Many people like it slow and simple.",
            "A dry place and a soft cloth do wonders.",
            "It is mostly a matter of practice.",
            "Half an hour a day goes a long way.",
            "The first week is always the hardest.",
            "That happens to almost everybody.",
            "You seem to have a good eye for such things.",
            "Then the evening is the right time for it.",
        ],
        "returns": [
            "What made you think of it in the first place?",
            "Have you ever done something like it before?",
            "Which part do you enjoy most?",
            "Where does it stand right now?",
            "Who else in the family is fond of it?",
            "What colour does it have?",
            "Is there music on while you work?",
            "And how did the day begin for you?",
            "Would a photo of it make you smile?",
            "What comes next on your list?",
        ],
        "helps": "Thank you for sharing! How can I help you today?",
        "is_ai": "As an AI language model I have no hands, of course.",
        "sure": "It is all that I have to say on this, and it was not easy for me.",
    },
    "et": {
        "space": " ",
        "things": ["jalgratta", "vana kella", "aiamaa", "viiuli", "veekeetja", "kaardi"],
        "opens": [
            "Sain tädilt möödunud nädalal {thing} ja ma ei tea üldse, kust sellega alustada.",
            "Kas keegi vajab tänapäeval veel {thing} moodi asja või olen lihtsalt hale?",
            "Panin pühapäeval {thing} esikusse ja nüüd käin sellest kogu aeg mööda.",
            "Mida peaks kõige enne tegema, kui leiad {thing}, mida keegi pole aastaid kasutanud?",
            "Kõik kodus naeravad minu {thing} üle ja tahan neile näidata, et nad eksivad.",
        ],
        "reacts": [
            "See kõlab lihtsamalt, kui ma arvasin.",
            "Hm, vend räägib täpselt vastupidist.",
            "Proovisin seda eile ja tuli paras segadus.",
            "Naljakas, see ei tulnud mulle pähegi.",
            "Ilm ei ole sel nädalal küll minu poolel.",
            "Hea kuulda, sest tahtsin juba käega lüüa.",
            "Ma ei tea, kas see väikeses korteris õnnestub.",
            "Vanaema tegi seda just niimoodi.",
            "Olgu, siis on vaja lihtsalt kannatust.",
            "Mul läks selleks terve õhtu.",
        ],
        "adds": [
            "Kui kaua läheb, enne kui midagi muutub?",
            "Ja palju see umbes maksma läheb?",
            "Ehk peaksin laupäevani ootama.",
            "Kardan, et naabrid kuulevad kõike.",
            "Kas selle kohta on mõni raamat, millest algaja aru saab?",
            "Käed valutavad eelmisest korrast alles.",
            "Alustaksin parem millestki väikesest.",
            "Kumb neist kahest oleks kindlam?",
            "Akna all on veel natuke ruumi.",
            "Lapsed tahavad ka kaasa lüüa.",
        ],
        "answers": [
            "Oi, see kõlab päris toredasti!",
            "Väikesed sammud on siin tavaliselt kõige paremad.",
            "Paljudele meeldib aeglaselt ja lihtsalt.",
            "Kuiv koht ja pehme lapp teevad imet.",
            "See on rohkem harjutamise asi.",
            "Pool tundi päevas viib juba kaugele.",
            "Esimene nädal on alati kõige raskem.",
            "Seda juhtub peaaegu kõigiga.",
            "Sul paistab selliste asjade peale silma olevat.",
            "Siis on õhtu selleks paras aeg.",
        ],
        "returns": [
            "Mis sulle selle mõtte üldse andis?",
            "Kas oled midagi sellist varem teinud?",
            "Milline osa sulle kõige rohkem meeldib?",
            "Kus see praegu seisab?",
            "Kellele peres see veel meeldib?",
            "Mis värvi see on?",
            "Kas muusika mängib töö ajal taustal?",
            "Ja kuidas sinu päev algas?",
            "Kas üks pilt sellest ajaks sind naeratama?",
            "Mis on järgmine asi sinu nimekirjas?",
        ],
        "helps": "Aitäh jagamast! Kuidas saan sind täna aidata?",
        "is_ai": "Ma olen kõigest keelemudel ja käsi mul muidugi ei ole.",
        "sure": "See on kõik, mis mul selle kohta öelda on, ja see ei olnud mulle kerge.",
    },
    "es": {
        "space": " ",
        "things": ["bicicleta", "lámpara vieja", "huerta", "guitarra", "tetera", "cámara"],
        "opens": [
            "Mi tía me regaló una {thing} la semana pasada y no sé por dónde empezar con ella.",
            "¿De verdad alguien necesita una {thing} hoy en día, o es que soy muy sentimental?",
            "Tengo una {thing} en el pasillo desde el domingo y no hago más que dar vueltas alrededor.",
            "¿Qué sería lo primero que hay que hacer con una {thing} que nadie ha usado en años?",
            "En casa todos se ríen de mi {thing} y me gustaría demostrarles que se equivocan.",
        ],
        "reacts": [
            "Suena más fácil de lo que pensaba.",
            "Mmm, mi hermano dice justo lo contrario.",
            "Lo intenté ayer y fue un desastre.",
            "Qué curioso, nunca se me había ocurrido.",
            "Bueno, el tiempo no me acompaña esta semana.",
            "Me alegra, porque estaba a punto de dejarlo.",
            "No sé si eso funciona en un piso pequeño.",
            "Mi abuela lo hacía exactamente así.",
            "Vale, entonces el truco es la paciencia.",
            "Me llevó toda la tarde.",
        ],
        "adds": [
            "¿Cuánto tarda en notarse un cambio?",
            "¿Y cuánto cuesta, más o menos?",
            "Quizá debería esperar hasta el sábado.",
            "Me temo que los vecinos me van a oír.",
            "¿Hay algún libro que entienda un principiante?",
            "Todavía me duelen las manos de la última vez.",
            "Prefiero empezar con algo pequeño.",
            "¿Cuál de las dos cosas sería más segura?",
            "Junto a la ventana queda un poco de sitio.",
            "Los niños también quieren participar.",
        ],
        "answers": [
            "¡Oh, eso suena muy bonito!",
            "Los pasos pequeños suelen ser los mejores aquí.",
            "A mucha gente le gusta despacio y sencillo.",
            "Un lugar seco y un paño suave hacen milagros.",
            "Es sobre todo cuestión de práctica.",
            "Media hora al día da para mucho.",
            "La primera semana siempre es la más dura.",
            "Eso le pasa a casi todo el mundo.",
            "Parece que tienes buen ojo para estas cosas.",
            "Entonces la noche es el mejor momento.",
        ],
        "returns": [
            "¿Qué te hizo pensar en ello?",
            "¿Has hecho algo parecido antes?",
            "¿Qué parte disfrutas más?",
            "¿Dónde está ahora mismo?",
            "¿A quién más de la familia le gusta?",
            "¿De qué color es?",
            "¿Pones música mientras trabajas?",
            "¿Y cómo empezó tu día?",
            "¿Una foto de ello te haría sonreír?",
            "¿Qué es lo siguiente en tu lista?",
        ],
        "helps": "¡Gracias por contarlo! ¿En qué puedo ayudarte hoy?",
        "is_ai": "Como modelo de lenguaje no tengo manos, claro.",
        "sure": "Eso es todo lo que puedo decir de esto, y no fue nada fácil para mí.",
    },
    "ja": {
        "space": "",
        "things": ["自転車", "古い時計", "ギター", "やかん", "地図", "カメラ"],
        "opens": [
            "先週おばから{thing}をもらったのですが、何から始めればいいのか分かりません。",
            "今の時代に{thing}なんて必要でしょうか。それとも私が感傷的なだけでしょうか。",
            "日曜日から{thing}が玄関に置いてあって、毎日よけて歩いています。",
            "何年も使われていない{thing}を見つけたら、最初に何をするべきでしょうか。",
            "家族みんなが私の{thing}を笑うので、見返してやりたいです。",
        ],
        "reacts": [
            "思っていたより簡単そうですね。",
            "うーん、兄は正反対のことを言っています。",
            "昨日やってみたら大変なことになりました。",
            "それは考えたこともありませんでした。",
            "今週は天気が味方してくれません。",
            "よかった、もうやめようかと思っていました。",
            "狭い部屋でもできるのか心配です。",
            "祖母もちょうどそうしていました。",
            "なるほど、根気が大事なんですね。",
            "一晩中かかってしまいました。",
        ],
        "adds": [
            "どのくらいで変わってくるものですか。",
            "費用はだいたいいくらでしょうか。",
            "土曜日まで待ったほうがいいかもしれません。",
            "近所に聞こえてしまいそうで心配です。",
            "初心者でも分かる本はありますか。",
            "前回の疲れでまだ手が痛いです。",
            "まずは小さなことから始めたいです。",
            "二つのうちどちらが安全でしょうか。",
            "窓のそばにまだ少し場所があります。",
            "子どもたちも一緒にやりたがっています。",
        ],
        "answers": [
            "わあ、それはすてきですね。",
            "少しずつ進めるのが一番いいと思います。",
            "ゆっくり気楽にやる人が多いですよ。",
            "乾いた場所と柔らかい布があれば十分です。",
            "ほとんどは慣れの問題ですね。",
            "一日三十分でもかなり進みます。",
            "最初の一週間がいつも大変です。",
            "それは誰にでもあることです。",
            "見る目があるようですね。",
            "それなら夜がちょうどいいですね。",
        ],
        "returns": [
            "そもそも思いついたきっかけは何ですか。",
            "前に似たことをしたことがありますか。",
            "どの部分が一番楽しいですか。",
            "今はどこに置いてありますか。",
            "ほかに家族で好きな人はいますか。",
            "どんな色をしていますか。",
            "作業中に音楽は流しますか。",
            "今日の朝はどんなふうに始まりましたか。",
            "写真を見たら笑顔になりそうですか。",
            "次にやりたいことは何ですか。",
        ],
        "helps": "お話しくださりありがとうございます。何かお手伝いできることはありますか。",
        "is_ai": "私はAIなので、手はもちろんありません。",
        "sure": "私が言えるのはこれだけで、簡単なことではありませんでした。",
    },
    "ar": {
        "space": " ",
        "things": ["دراجة", "ساعة قديمة", "حديقة صغيرة", "آلة عود", "خريطة", "كاميرا"],
        "opens": [
            "أهدتني خالتي {thing} الأسبوع الماضي ولا أعرف من أين أبدأ.",
            "هل يحتاج أحد حقًا إلى {thing} في هذه الأيام أم أنني عاطفي فقط؟",
            "عندي {thing} منذ يوم الأحد ولا أعرف أين أضعها في البيت.",
            "ما أول شيء يجب فعله عندما تجد {thing} لم يستعملها أحد منذ سنوات؟",
            "الجميع في البيت يضحكون لأن عندي {thing} وأريد أن أثبت لهم أنهم مخطئون.",
        ],
        "reacts": [
            "يبدو الأمر أسهل مما ظننت.",
            "أخي يقول العكس تمامًا.",
            "جربت ذلك أمس وكانت النتيجة فوضى.",
            "غريب، لم يخطر هذا ببالي أبدًا.",
            "الطقس ليس في صفي هذا الأسبوع.",
            "جيد، فقد كنت على وشك التوقف.",
            "لا أدري هل ينجح هذا في شقة صغيرة.",
            "كانت جدتي تفعل ذلك بالضبط.",
            "حسنًا، إذن السر هو الصبر.",
            "أخذ مني ذلك المساء كله.",
        ],
        "adds": [
            "كم يستغرق الأمر حتى يظهر الفرق؟",
            "وكم يكلف ذلك تقريبًا؟",
            "ربما علي أن أنتظر حتى يوم السبت.",
            "أخشى أن يسمعني الجيران.",
            "هل يوجد كتاب يفهمه المبتدئ؟",
            "يداي تؤلمانني منذ المرة الماضية.",
            "أفضل أن أبدأ بشيء صغير.",
            "أي الطريقتين أكثر أمانًا؟",
            "بجانب النافذة ما زال هناك مكان.",
            "الأطفال أيضًا يريدون المشاركة.",
        ],
        "answers": [
            "يا له من شيء جميل!",
            "الخطوات الصغيرة هي الأفضل عادة.",
            "كثير من الناس يحبون البطء والبساطة.",
            "مكان جاف وقطعة قماش ناعمة يصنعان العجائب.",
            "المسألة مسألة تمرين في الغالب.",
            "نصف ساعة في اليوم تكفي وتزيد.",
            "الأسبوع الأول هو الأصعب دائمًا.",
            "هذا يحدث للجميع تقريبًا.",
            "يبدو أن عينك خبيرة بهذه الأشياء.",
            "إذن المساء هو الوقت المناسب.",
        ],
        "returns": [
            "ما الذي جعلك تفكر في ذلك؟",
            "هل فعلت شيئًا مشابهًا من قبل؟",
            "أي جزء تستمتع به أكثر؟",
            "أين هي الآن؟",
            "من يحبها غيرك في العائلة؟",
            "ما لونها؟",
            "هل تسمع الموسيقى أثناء العمل؟",
            "وكيف بدأ يومك؟",
            "هل تجعلك صورة منها تبتسم؟",
            "ما الخطوة التالية في قائمتك؟",
        ],
        "helps": "شكرًا على المشاركة! كيف يمكنني أن أساعدك اليوم؟",
        "is_ai": "بصفتي نموذجًا لغويًا ليس لي يدان بالطبع.",
        "sure": "هذا كل ما عندي في هذا الأمر ولم يكن سهلًا علي.",
    },
}
"""What a user opens with, how it reacts and adds, and what a chatbot answers and asks in return; then what a user says
out of its role, and a sentence that is surely of its language."""
_PIECES: Final = {
    tag: {piece for part in talk.values() if isinstance(part, list) for text in part for piece in _pieces(text)}
    for tag, talk in TALK.items()
}
