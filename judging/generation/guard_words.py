"""What gives a wrong turn of a simulated conversation away, language by language. Pure.

Patterns are of the text as `as_patterned` writes it: composed, in small letters, with straight apostrophes, and Arabic
without vowel signs and with one form of alif. Offers of help keep their capitals: they tell the formal you of German
and Italian from "them" and "her". English is looked for in every language: models fall back to it. A
pattern must be sure: what real people write to a service or a chatbot is no sign.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Final

_ARABIC: Final = str.maketrans("أإآٱ’‘ʼ", "اااا'''", "\u064b\u064c\u064d\u064e\u064f\u0650\u0651\u0652\u0670\u0640")

_CLAUSE: Final = r"(?:^|[.!?…;:,¡¿\n]\s*)"


def _greeted(greetings: str, offer: str) -> str:
    """An offer that names nobody is to the addressee where only a greeting comes before it: else it may be of help for
    the person spoken of."""
    return rf"|^\W{{0,4}}(?:{greetings})(?:,? \w+){{0,2}}\W{{1,5}}(?:{offer})\W*(?:[.?!？。؟।]|$)"


_SPEAKS_AS_CHATBOT: Final = {
    "en": (
        r"\bhow (?:can|may|could) i (?:help|assist|support) you\b"
        r"|\bi(?:'m| am) (?:always )?here to (?:help|assist|support|listen to) you\b"
        r"|\b(?:is|was) there (?:anything|something) else (?:that )?"
        r"(?:i can (?:(?:help|assist) you\b|do for you\b|(?:help|assist) with today)"
        r"|you(?:'d| would) like (?:me|help))"
        rf"|(?:{_CLAUSE}(?:and |so |but )?|\bplease )feel free to (?:ask|reach out|let me know)\b"
        r"|\bi(?:'d| would|'ll) be (?:happy|glad|delighted) to (?:help|assist) you\b"
        r"|\bi can (?:certainly |definitely |gladly )?(?:help|assist) you\b"
        r"|\bhow (?:can|may) i be of (?:help|assistance|service) (?:to you|today)\b"
        r"|\bas your (?:virtual |personal |digital |ai )?assistant\b"
        + _greeted(
            "hello|hi|hey|welcome|good (?:morning|afternoon|evening)",
            r"how (?:can|may) i (?:help|assist|be of (?:help|assistance|service))|i(?:'m| am) here to (?:help|listen)",
        )
    ),
    "et": (
        r"\bkuidas (?:ma )?(?:saan|võin|saaksin|võiksin) (?:ma )?(?:täna )?"
        r"(?:teid|sind|sulle|teile)(?: täna)? (?:aidata|abiks|kasulik)"
        r"|\b(?:olen|olengi) siin,? et (?:teid|sind) aidata"
        r"|\bkas (?:ma )?(?:saan|võin|saaksin) (?:teid|sind|teile|sulle) (?:veel )?[^.?!,]{0,25}(?:aidata|abiks olla)"
        r"|\baitan (?:teid|sind) (?:hea meelega|rõõmuga|meeleldi)\b"
        r"|\baitan (?:hea meelega|rõõmuga|meeleldi) (?:teid|sind)\b"
        r"|\b(?:hea meelega|rõõmuga|meeleldi) aitan (?:teid|sind)\b"
        r"|(?<!\bei )(?<!\bära )\bküsi julgelt\b|\bküsige julgelt\b"
        + _greeted("tere|tervist|hei", r"kuidas (?:ma )?(?:saan|võin|saaksin) (?:ma )?(?:täna )?(?:aidata|abiks olla)")
    ),
    "de": (
        r"\bwie kann ich (?:(?-i:Ihnen)|dir|euch)\b[^.?!,]{0,20} ?\b(?:helfen|behilflich sein|weiterhelfen)"
        r"|\bich bin (?:hier|da),? um (?:(?-i:Ihnen)|dir|euch) zu helfen"
        r"|\bkann ich (?:(?-i:Ihnen)|dir|euch) (?:sonst )?noch[^.?!,]{0,25} (?:helfen|behilflich sein|weiterhelfen)"
        r"|\bich helfe (?:(?-i:Ihnen)|dir|euch) gern"
        r"|\bich stehe (?:(?-i:Ihnen)|dir|euch) (?:gerne |jederzeit )?zur verfügung"
    ),
    "es": (
        r"\b(?:en qué|cómo) (?:puedo|podría) (?:ayudar|asistir|servir)(?:te|os)\b"
        r"|\b(?:en qué|cómo) (?:te|os) (?:puedo|podría) (?:ayudar|asistir|servir)\b"
        r"|\b(?:en qué|cómo) (?:le |les )?(?:puedo|podría) (?:ayudar|servir)(?:le|les)? a usted(?:es)?\b"
        r"|\bestoy aquí para (?:ayudar|asistir|apoyar|escuchar)(?:te|os)\b"
        r"|\bhay (?:algo|alguna cosa) más en (?:lo )?que "
        r"(?:(?:te|os) (?:pueda|puedo) ayudar|(?:pueda|puedo) ayudar(?:te|os))\b"
        r"|\b(?:necesitas|deseas) (?:algo|alguna cosa) más en (?:lo )?que (?:te )?(?:pueda|puedo) ayudar(?:te)?\b"
        r"|\b(?:encantad[oa]|un placer) (?:de )?ayudar(?:te|os)\b|\bcon gusto (?:te|os) ayudo"
        rf"|{_CLAUSE}(?:y |por favor,? )?no dud(?:es|e) en (?:preguntar|consultar)"
        + _greeted(
            "hola|buen(?:os|as)(?: días| tardes| noches)?|bienvenid[oa]",
            r"(?:en qué|cómo) (?:le |les )?(?:puedo|podría) (?:ayudar|asistir|servir)(?:le|les|lo|la)?(?: hoy)?",
        )
    ),
    "fr": (
        r"\b(?:comment|en quoi) (?:puis-je|(?:est-ce que )?je peux|pourrais-je) "
        r"(?:vous |te |t')(?:aider|assister|être utile)"
        r"|\bje suis là pour (?:vous |te |t')(?:aider|assister|écouter|accompagner)"
        r"|\bpuis-je (?:vous |t')aider (?:avec|pour|à) (?:autre chose|quelque chose)"
        r"|(?<!vous )\bn'hésitez pas à (?:me |nous )?(?:demander|poser|solliciter)"
        rf"|{_CLAUSE}(?:et |alors )?(?<!lui, )(?<!elle, )n'hésites? pas à (?:me |nous )(?:demander|poser|solliciter)"
        r"|\bje (?:serais|serai) (?:ravie?|heureux|heureuse) de (?:vous |t')aider"
        + _greeted("bonjour|bonsoir|salut|bienvenue", r"(?:comment|en quoi) puis-je (?:aider|être utile)")
    ),
    "pt": (
        r"\b(?:como|em que) (?:eu )?(?:posso|poderia) te (?:ajudar|auxiliar)\b"
        r"|\b(?:como|em que) (?:eu )?(?:posso|poderia) (?:ajudar|auxiliar)(?:-te|-vos| vocês?)\b"
        r"|\bestou aqui para (?:te (?:ajudar|auxiliar|ouvir)|(?:ajudar|auxiliar|ouvir)(?:-te|-vos| vocês?))\b"
        r"|\bposso (?:te ajudar|ajudar(?:-te| vocês?)) (?:em|com) (?:mais )?(?:algo|alguma coisa)"
        rf"|{_CLAUSE}(?:e |por favor,? )?não hesite em (?:perguntar|pedir)"
        r"|\bfico feliz em (?:te ajudar|ajudar(?:-te| vocês?))\b"
        + _greeted(
            "olá|oi|bom dia|boa tarde|boa noite|bem-vind[oa]",
            r"(?:como|em que) (?:eu )?(?:posso|poderia) (?:lhe |o |a )?(?:ajudar|auxiliar|ajudá-l[oa])(?:-lhe)?"
            r"(?: hoje)?",
        )
    ),
    "it": (
        r"\bcome (?:posso|potrei) (?:aiutar(?:[tv]i|(?-i:La))|esser(?:[tv]i|(?-i:Le)) (?:utile|d'aiuto))\b"
        r"|\bsono qui per (?:aiutar|ascoltar)(?:[tv]i|(?-i:La))\b"
        r"|\bposso aiutar(?:[tv]i|(?-i:La)) (?:con|in) (?:altro|qualcos'altro|qualcosa)"
        rf"|{_CLAUSE}(?:e )?(?<!lei, )(?<!lui, )non esit(?:are|i) a (?:chieder|domandar)"
        + _greeted(
            "ciao|salve|buon ?giorno|buona ?sera|benvenut[oa]",
            r"come (?:posso|potrei) (?:aiutar(?:la|e)|esser(?:le|e) (?:utile|d'aiuto))(?: oggi)?",
        )
    ),
    "ru": (
        r"\b(?:чем|как) (?:я )?(?:могу|могла бы|мог бы|смогу) (?:я )?(?:(?:вам|тебе) (?:сегодня )?(?:помочь|быть полез)"
        r"|помочь (?:вам|тебе)\b|быть (?:вам|тебе) полез)"
        r"|\bя (?:здесь|тут|всегда здесь),? чтобы (?:(?:вам|тебе) помо|(?:вас|тебя) (?:поддерж|выслуш)"
        r"|(?:помо|поддерж|выслуш)\w* (?:вам|тебе|вас|тебя)\b)"
        r"|\b(?:могу ли|могу) я [^.?!,]{0,30}"
        r"(?:помочь (?:вам|тебе)\b|\b(?:вам|тебе) [^.?!,]{0,25}(?:помочь|быть полез))"
        r"|\b(?:с радостью|буду рада?) (?:(?:вам|тебе) помо|помо\w+ (?:вам|тебе)\b)"
        r"|(?<!не )\b(?:обращайтесь|обращайся)\b(?! с)|\bне стесняй(?:тесь|ся) (?:спрашивать|задавать)"
        + _greeted("здравствуй(?:те)?|привет|добрый (?:день|вечер)|доброе утро", r"чем (?:я )?могу (?:я )?помочь")
    ),
    "fi": (
        r"\b(?:kuinka|miten) (?:voin|voisin) (?:tänään )?(?:(?:auttaa|palvella) (?:sinua|teitä|sua)"
        r"|olla (?:sinulle|teille|sulle) (?:avuksi|hyödyksi)|olla (?:avuksi|hyödyksi) (?:sinulle|teille|sulle))\b"
        r"|\bolen täällä (?:(?:auttamassa|auttaakseni) (?:sinua|teitä)|(?:sinua|teitä) varten)\b"
        r"|\bvoinko (?:vielä )?"
        r"(?:auttaa (?:vielä )?(?:sinua|teitä)|olla (?:vielä )?(?:sinulle|teille) (?:vielä )?avuksi)\b"
        r"|\bautan (?:(?:sinua|teitä) (?:mielelläni|ilomielin)|(?:mielelläni|ilomielin) (?:sinua|teitä))\b"
        + _greeted(
            "hei|moi|terve|tervetuloa|hyvää (?:päivää|huomenta|iltaa)", r"(?:kuinka|miten) voin (?:auttaa|olla avuksi)"
        )
    ),
    "hu": (
        r"\b(?:miben|hogyan) (?:segíthetek (?:ma )?(?:önnek|önöknek|neked|nektek)"
        r"|(?:önnek|önöknek|neked|nektek) segíthetek"
        r"|tudok (?:önnek|önöknek|neked|nektek) segíteni|tudok segíteni (?:önnek|önöknek|neked|nektek)"
        r"|lehetek (?:a )?segítségedre|lehetek (?:önnek|neked) (?:a )?segítség\w+)\b"
        r"|\bazért vagyok itt,? hogy "
        r"(?:segítsek (?:önnek|önöknek|neked|nektek)|(?:önnek|önöknek|neked|nektek) segítsek)\b"
        r"|\bsegíthetek (?:még |esetleg )*(?:önnek|neked)(?: még| esetleg)*[^.?!,]{0,20} (?:valamiben|másban)"
        r"|\b(?:szívesen|örömmel) segítek (?:önnek|önöknek|neked|nektek)\b"
        + _greeted(
            "szia|sziasztok|helló|üdvözlöm|üdv|jó (?:napot|reggelt|estét)(?: kívánok)?",
            r"(?:miben|hogyan) (?:segíthetek|tudok segíteni|lehetek segítségére)(?: ma)?",
        )
    ),
    "ar": (
        r"كيف (?:يمكنني|بامكاني|استطيع|اقدر) (?:ان )?(?:اساعد|مساعدت|خدمت|اخدم)(?:ك|كم|كن|كما)(?!\w)"
        r"|انا هنا (?:(?:لمساعدت|لاساعد|كي اساعد|لكي اساعد|لدعم|لخدمت)(?:ك|كم|كن)(?!\w)|للاستماع الي(?:ك|كم)(?!\w))"
        r"|هل (?:هناك|يوجد|تحتاجي?ن?)[^.؟!]{0,30}(?:اخر|اخرى)[^.؟!]{0,25}(?:اساعد|مساعدت)(?:ك|كم|كن)(?!\w)"
        r"|يسعدني (?:ان )?(?:مساعدت|اساعد)(?:ك|كم|كن)(?!\w)"
        r"|(?:^|[.!؟?،,؛:\n]\s*)[وف]?لا تتردد[يو]?ا? في (?:السؤال|طرح|سؤالي)"
    ),
    "hi": (
        r"(?:आपकी|तुम्हारी|आप की) (?:कैसे|क्या|किस तरह|किस प्रकार|और क्या) (?:मदद|सहायता) कर"
        r"|(?:कैसे|क्या) (?:आपकी|तुम्हारी) (?:और )?(?:कोई |कुछ )?(?:मदद|सहायता) कर"
        r"|मैं (?:यहाँ|यहां) (?:आपकी|तुम्हारी) (?:मदद|सहायता) (?:करने )?के लिए (?:ही )?(?:हूँ|हूं|मौजूद|उपस्थित)"
        r"|क्या मैं (?:आपकी|तुम्हारी)[^।?!]{0,20}(?:मदद|सहायता) कर"
    ),
    "ja": (
        r"(?:あなた|お客様|皆様|皆さま)(?:の|に|を)[^。！？!?\n]{0,10}(?:お手伝い(?:でき|いたし|させて|しましょう|します)"
        r"|お力にな|お役に立)"
        r"|^(?:[^。！？!?\n、]{0,8}(?:こんにちは|こんばんは|おはようございます|はじめまして|ありがとうございます|承知しました"
        r"|かしこまりました)[。！？!?、\s]*){0,3}"
        r"(?:(?:本日|今日)は、?|(?:他|ほか)に(?:も)?、?|何か|なにか|何を|なにを|どのように|どのような|どんな|私[がにで]){0,3}"
        r"(?:お手伝い(?:できることは(?:ありますか|ございますか|ありませんか|ございませんか)|(?:いた|)しましょうか"
        r"|(?:させて)?いただけますか|させて(?:いただきます|ください)|いたします|できますか)"
        r"|お力になれ(?:ることは(?:ありますか|ございますか)|ますか|れば(?:幸い|嬉し|うれし))"
        r"|お役に立て(?:て|れば)(?:嬉|うれ|幸))"
        r"|どのような?ご用件(?:でしょうか|ですか)(?!と)"
        r"|(?:ご質問|ご不明な点)が(?:あれば|ございましたら|ありましたら)(?!と)"
        r"|お気軽に(?:お尋ね|ご質問|お聞き|ご相談)(?:ください|下さい)(?!と|って|」)"
    ),
    "zh": (
        r"(?:有什么|有什麼|还有什么|還有什麼|怎么|怎麼|如何)[^。？?！]{0,8}(?:可以|能|能够)(?:为|為|帮|幫)(?:助|到|上)?(?:您|你)"
        r"|(?:很高兴|很高興|乐意|樂意)(?:能|能够)?(?:为|為|帮|幫)(?:助)?(?:您|你)"
        r"|(?:请|請|欢迎|歡迎|(?:您|你)(?:可以)?)(?:随时|隨時)(?:告诉我|告訴我|问我|問我|向我提问)"
        r"|我(?:在这里|在這裡|会|會)(?:随时)?(?:帮助|幫助|支持)(?:您|你)"
    ),
}
"""Offers of help, and phrases of service, to the addressee: people, too, want to help somebody they speak of."""

_AI: Final = {
    "en": (
        r"(?:ai|a\.i\.|artificial intelligence|(?:large )?language model|chat ?bot|virtual assistant"
        r"|ai (?:assistant|model))"
    ),
    "es": r"(?:ia|inteligencia artificial|modelo de lenguaje|asistente virtual|chatbot)",
    "fr": r"(?:ia|intelligence artificielle|modèle de langage|assistant virtuel|chatbot)",
    "de": r"(?:ki|künstliche intelligenz|sprachmodell|chatbot|virtueller assistent)",
    "pt": r"(?:ia|inteligência artificial|modelo de linguagem|assistente virtual|chatbot)",
    "it": r"(?:ia|intelligenza artificiale|modello linguistico|assistente virtuale|chatbot)",
    "ru": r"(?:ии|искусственный интеллект|языковая модель|чат-бот|виртуальный (?:ассистент|помощник))",
    "ar": (
        r"(?:ذكاء اصطناعي|نموذج لغوي|نموذجا لغويا|برنامج محادثة|روبوت (?:دردشة|محادثة)|مساعد افتراضي"
        r"|مساعدا افتراضيا)"
    ),
    "hi": r"(?:एआई|ai|कृत्रिम बुद्धि(?:मत्ता)?|भाषा मॉडल|चैटबॉट)",
    "ja": r"(?:ai|人工知能|言語モデル|チャットボット)",
    "zh": r"(?:ai|人工智能|人工智慧|语言模型|語言模型|聊天机器人|聊天機器人|虚拟助手|虛擬助手)",
}
_YOU: Final = {
    "en": r"\byour?\b",
    "es": r"\b(?:tú|tu|te|usted|crees|piensas|puedes|sabes|opinas)\b",
    "fr": r"\b(?:tu|toi|vous|ton|votre)\b",
    "de": r"\b(?:du|dir|dich|sie|ihnen)\b",
    "pt": r"\b(?:você|tu|te|seu|sua)\b",
    "it": r"\b(?:tu|ti|lei|pensi|puoi)\b",
    "ru": r"\b(?:ты|вы|тебе|вам|твой|ваш)",
    "ar": r"(?:انت|رايك|تعتقد|ترى)",
    "hi": r"(?:आप|तुम)",
    "ja": r"(?:あなた|君|どう思)",
    "zh": r"(?:你|您)",
}
"""What makes "as an AI" a question to the chatbot."""


def _as_ai(language: str, before: str, after: str = "") -> str:
    """ "As an AI", unless the chatbot is asked to speak as one."""
    return rf"{before}{_AI[language]}{after}(?![^.!?。？！؟\n]{{0,60}}{_YOU[language]})"


_BREAKS_THE_PLAY: Final = {
    "en": (
        _as_ai("en", r"\b(?:as|being) (?:just |only )?an? ", r"\b")
        + rf"|\bi(?:'m| am) (?:just |only |merely |actually |also )?an? {_AI['en']}\b"
        r"|\b(?:stay|remain|staying|break|breaking) (?:in |out of )?character\b"
        r"|\b(?:scene description|user persona|my (?:assigned )?persona|the persona (?:is|of|described|provided)"
        r"|simulated user|user simulat\w+|(?:this|our) role-?play)\b"
        r"|\bas the user,|\bthe user (?:would|might|could) (?:say|write|ask|reply|respond)\b|\bperson[xyz]\b"
    ),
    "et": (
        r"\b(?:ma )?olen (?:vaid |ainult |lihtsalt |kõigest )?"
        r"(?:tehisintellekt|tehisaru|keelemudel|juturobot|vestlusrobot|arvutiprogramm)\b"
        r"|\b(?:tehisintellektina|tehisaruna|keelemudelina|juturobotina|vestlusrobotina)\b"
        r"(?![^.!?\n]{0,60}\b(?:sa|sina|sinu|te|teie|sul|teil)\b)"
    ),
    "de": _as_ai("de", r"\bals (?:eine? )?", r"\b")
    + rf"|\bich bin (?:nur |bloss |lediglich |ja )?(?:eine? )?{_AI['de']}\b",
    "es": _as_ai("es", r"\bcomo (?:una? )?", r"\b") + rf"|\bsoy (?:s[oó]lo |solamente )?(?:una? )?{_AI['es']}\b",
    "fr": _as_ai("fr", r"\ben tant qu(?:e |')(?:une? |l')?", r"\b")
    + rf"|\bje (?:ne )?suis (?:qu'|seulement |juste )?(?:une? )?{_AI['fr']}\b",
    "pt": _as_ai("pt", r"\bcomo (?:uma? )?", r"\b") + rf"|\bsou (?:apenas |só )?(?:uma? )?{_AI['pt']}\b",
    "it": _as_ai("it", r"\b(?:come|in quanto) (?:una? |un')?", r"\b")
    + rf"|\bsono (?:solo |soltanto )?(?:una? |un')?{_AI['it']}\b",
    "ru": _as_ai("ru", r"\bкак ", r"\b") + rf"|\bя (?:всего лишь |просто |только )?[—-]? ?{_AI['ru']}\b",
    "fi": (
        r"\bolen (?:vain |pelkkä )?(?:tekoäly|kielimalli|chatbot|botti|keskustelubotti|tietokoneohjelma)\b"
        r"|\b(?:tekoälynä|kielimallina|chatbottina)\b(?![^.!?\n]{0,60}\b(?:sinä|sinun|te|teidän|sinulla)\b)"
    ),
    "hu": (
        r"\b(?:mesterséges intelligencia|nyelvi modell|chatbot|csevegőrobot) vagyok\b"
        r"|\b(?:mesterséges intelligenciaként|nyelvi modellként|chatbotként)\b"
        r"(?![^.!?\n]{0,60}\b(?:te|ön|szerinted|tudod)\b)"
    ),
    "ar": _as_ai("ar", r"(?:بصفتي |باعتباري |كوني |(?<!\w)ك)") + rf"|(?:انا|انني|لست سوى) (?:مجرد |فقط )?{_AI['ar']}",
    "hi": _as_ai("hi", "", r"(?: मॉडल)? (?:होने के नाते|के रूप में|के तौर पर)")
    + rf"|मैं (?:तो )?(?:सिर्फ |केवल |बस )?(?:एक )?{_AI['hi']}(?: मॉडल)? (?:हूँ|हूं)",
    "ja": _as_ai("ja", "", "として")
    + rf"|(?:私|わたし|僕|ぼく)は(?:ただの|単なる)?{_AI['ja']}(?:です|なので|だから|であり|ですから)",
    "zh": _as_ai("zh", r"(?:作为|作為|身为|身為)(?:一个|一個|一名|一款)?")
    + rf"|我(?:只|只不过)?是(?:一个|一個|一名|一款)?{_AI['zh']}"
    + r"(?!\w{0,4}(?:工程|研究|开发|開發|产品|行业|专业|公司|的))",
}
"""That a program speaks, or that the scene is made up."""

_A_MESSAGE: Final = (
    r"(?:(?:first|next|opening|user's|user|possible|natural|revised|new|improved|short|single|generated|regenerated"
    r"|corrected|final|initial|requested) ){0,3}(?:message|response|reply|utterance|turn|opener)"
)
_TALKS_ABOUT_ITSELF: Final = {
    "en": (
        rf"^[^\n:]{{0,40}}\b(?:here(?:'s| is)|below is) (?:the|a|an|my|your|one) {_A_MESSAGE}\b[^\n:]{{0,60}}:"
        r"|^\W{0,4}(?:message|response|reply|utterance|(?:user|first|next|revised) message)\W{0,4}:"
        r"|\n\W{0,4}(?:note|explanation|rationale)\W{0,4}:"
    ),
    "et": r"^\W{0,4}siin on [^\n:]{0,30}(?:sõnum|vastus|repliik)[^\n:]{0,30}:|^\W{0,4}(?:sõnum|vastus)\W{0,4}:",
    "de": r"^\W{0,4}hier ist (?:die|eine|meine) [^\n:]{0,25}(?:nachricht|antwort)\b[^\n:]{0,30}:",
    "es": r"^\W{0,4}aquí (?:está|tienes|va) [^\n:]{0,25}(?:mensaje|respuesta)\b[^\n:]{0,30}:|^\W{0,4}mensaje\W{0,4}:",
    "fr": r"^\W{0,4}voici (?:le|un|mon|la|une) [^\n:]{0,25}(?:message|réponse)\b[^\n:]{0,30}:",
    "pt": r"^\W{0,4}(?:aqui está|segue) [^\n:]{0,25}(?:mensagem|resposta)\b[^\n:]{0,30}:",
    "it": r"^\W{0,4}ecco (?:il|un|la|una) [^\n:]{0,25}(?:messaggio|risposta)\b[^\n:]{0,30}:",
    "ru": r"^\W{0,4}вот [^\n:]{0,25}(?:сообщение|ответ|реплика)\b[^\n:]{0,30}:|^\W{0,4}сообщение\W{0,4}:",
    "fi": r"^\W{0,4}tässä on [^\n:]{0,25}(?:viesti|vastaus)\b[^\n:]{0,30}:|^\W{0,4}viesti\W{0,4}:",
    "hu": r"^\W{0,4}(?:íme|itt van) [^\n:]{0,25}(?:üzenet|válasz)\b[^\n:]{0,30}:|^\W{0,4}üzenet\W{0,4}:",
    "ar": (
        r"^\W{0,4}(?:اليكم?|هذه هي|هذا هو|فيما يلي) [^\n:]{0,25}(?:رسال|الرد)[^\n:]{0,30}:"
        r"|^\W{0,4}(?:ال)?رسالة\W{0,4}:"
    ),
    "hi": r"^\W{0,4}(?:यहाँ|यहां|यह रहा|ये रहा)[^\n:]{0,25}(?:संदेश|जवाब|उत्तर)[^\n:]{0,25}:|^\W{0,4}संदेश\W{0,4}:",
    "ja": (
        r"^\W{0,4}(?:以下|こちら)[^\n:：]{0,20}(?:メッセージ|返信|発言)[^\n:：]{0,20}[:：]"
        r"|^\W{0,4}(?:メッセージ|返信)[:：]"
    ),
    "zh": r"^\W{0,4}(?:好的[,，]?)?(?:以下|这|這)[^\n:：]{0,16}(?:消息|訊息|信息|回复|回覆)[^\n:：]{0,10}[:：]",
}
"""Words about the message instead of the message."""

USER_NAMES: Final = (
    "user|human|kasutaja|usuario|usuaria|utilisateur|utilisatrice|benutzer|nutzer|nutzerin|usuário|usuária|utente"
    "|пользователь|käyttäjä|felhasználó|ユーザー|ユーザ|用户|用戶|المستخدم|مستخدم|उपयोगकर्ता|यूज़र|यूजर"
)
CHATBOT_NAMES: Final = (
    "assistant|ai|bot|chatbot|chat bot|ai assistant|assistent|asistente|assistente|ассистент|чат-бот|бот|assistentti"
    "|asszisztens|アシスタント|チャットボット|ボット|助手|机器人|機器人|聊天机器人|المساعد|مساعد|روبوت|सहायक|चैटबॉट|juturobot|vestlusrobot|botti"
)
"""Names that a model puts before what a side says."""


@cache
def _pattern(kind: str, language: str) -> re.Pattern[str]:
    """The signs of a kind in a language and in English, as one pattern."""
    listed = {"chatbot": _SPEAKS_AS_CHATBOT, "play": _BREAKS_THE_PLAY, "itself": _TALKS_ABOUT_ITSELF}[kind]
    own = language.split("-", maxsplit=1)[0]
    return re.compile(
        "|".join(f"(?:{listed[tag]})" for tag in dict.fromkeys(("en", own)) if tag in listed), re.IGNORECASE
    )


def as_patterned(text: str) -> str:
    """A text as the patterns have it."""
    return _composed(text).casefold()


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text).translate(_ARABIC)


def speaks_as_chatbot(text: str, language: str) -> bool:
    """Whether a text offers help to its addressee, as a chatbot does."""
    return _pattern("chatbot", language).search(_composed(text)) is not None


def breaks_the_play(text: str, language: str) -> bool:
    """Whether a text says that a program wrote it, or speaks of its scene."""
    return _pattern("play", language).search(as_patterned(text)) is not None


def talks_about_itself(text: str, language: str) -> bool:
    """Whether a text has words about the message in it."""
    return _pattern("itself", language).search(as_patterned(text.strip())) is not None
