"""What a reply in plain text says in words: that its model refuses, or a number. Pure.

Numbers from 0 to 10 are known in the languages below, refusals in those of ``_REFUSALS``. A word that means another
number in one of the languages asked about means none. In doubt nothing is read: an unreadable reply is missing, never
wrong.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache
from typing import Final

# --- numbers ----------------------------------------------------------------------------------------------------------
# From 0 to 10, in the order of their values; forms of one number are divided by a slash.
_NUMBERS: Final = {
    "ar": "صفر واحد/واحدة اثنان/اثنين/اثنتان/اثنتين/إثنان ثلاثة/ثلاث أربعة/أربع/اربعة خمسة/خمس ستة/ست سبعة/سبع "
    "ثمانية/ثمان/ثماني تسعة/تسع عشرة/عشر",
    "bg": "нула един/една/едно два/две три четири пет шест седем осем девет десет",
    "cs": "nula jedna/jeden/jedno dva/dvě tři čtyři pět šest sedm osm devět deset",
    "da": "nul en/et to tre fire fem seks syv otte ni ti",
    "de": "null eins zwei drei vier fünf sechs sieben acht neun zehn",
    "el": "μηδέν ένα/ένας/μία δύο/δυο τρία/τρεις τέσσερα/τέσσερις πέντε έξι επτά/εφτά οκτώ/οχτώ εννέα/εννιά δέκα",
    "en": "zero one two three four five six seven eight nine ten",
    "es": "cero uno/una dos tres cuatro cinco seis siete ocho nueve diez",
    "et": "null üks kaks kolm neli viis kuus seitse kaheksa üheksa kümme",
    "fa": "صفر یک دو سه چهار پنج شش هفت هشت نه ده",
    "fi": "nolla yksi kaksi kolme neljä viisi kuusi seitsemän kahdeksan yhdeksän kymmenen",
    "fr": "zéro un/une deux trois quatre cinq six sept huit neuf dix",
    "he": "אפס אחת/אחד שתיים/שניים שלוש/שלושה ארבע/ארבעה חמש/חמישה שש/שישה שבע/שבעה שמונה תשע/תשעה עשר/עשרה",
    "hi": "शून्य एक दो तीन चार पांच/पाँच छह/छः/छे सात आठ नौ दस",
    "hu": "nulla egy kettő/két három négy öt hat hét nyolc kilenc tíz",
    "id": "nol satu dua tiga empat lima enam tujuh delapan sembilan sepuluh",
    "it": "zero uno/una due tre quattro cinque sei sette otto nove dieci",
    "ja": "零/〇/ゼロ 一 二 三 四 五 六 七 八 九 十",
    "ko": "영/공 일/하나 이/둘 삼/셋 사/넷 오/다섯 육/여섯 칠/일곱 팔/여덟 구/아홉 십/열",
    "lt": "nulis vienas du trys keturi penki šeši septyni aštuoni devyni dešimt",
    "lv": "nulle viens divi trīs četri pieci seši septiņi astoņi deviņi desmit",
    "nb": "null en/ett to tre fire fem seks sju/syv åtte ni ti",
    "nl": "nul een/één twee drie vier vijf zes zeven acht negen tien",
    "pl": "zero jeden/jedna/jedno dwa/dwie trzy cztery pięć sześć siedem osiem dziewięć dziesięć",
    "pt": "zero um/uma dois/duas três quatro cinco seis sete oito nove dez",
    "ro": "zero unu/una doi/două trei patru cinci șase șapte opt nouă zece",
    "ru": "ноль/нуль один/одна/одно два/две три четыре пять шесть семь восемь девять десять",
    "sv": "noll ett två tre fyra fem sex sju åtta nio tio",
    "tr": "sıfır bir iki üç dört beş altı yedi sekiz dokuz on",
    "uk": "нуль один/одна/одне два/дві три чотири п'ять/п’ять шість сім вісім дев'ять/дев’ять десять",
    "vi": "không một hai ba bốn năm sáu bảy tám chín mười",
    "zh": "零/〇 一 二/两/兩 三 四 五 六 七 八 九 十",
}
_MARKS_OF_ARABIC: Final = re.compile("[\u064b-\u0652\u0670\u0640]")
_AROUND: Final = " \t\r\n*_\"'`()[].,!。！।،…“”„«»「」『』【】"
LONGEST_NUMBER: Final = 40  # characters of a reply that may be a number in words


def number_in_words(text: str, languages: Iterable[str]) -> int | None:
    """The number that the text is a word for in one of these languages; None where it is anything else."""
    if len(text) > LONGEST_NUMBER + 20:
        return None
    word = _plain(text.strip(_AROUND))
    known = [numbers[word] for language in languages if word in (numbers := _numbers(language.split("-")[0].lower()))]
    return known[0] if len({*known}) == 1 else None


@cache
def _numbers(language: str) -> dict[str, int]:
    forms = enumerate(_NUMBERS.get({"no": "nb", "nn": "nb"}.get(language, language), "").split())
    return {_plain(form): number for number, written in forms for form in written.split("/")}


def _plain(word: str) -> str:
    return _MARKS_OF_ARABIC.sub("", unicodedata.normalize("NFKC", word).casefold())


# --- refusals ---------------------------------------------------------------------------------------------------------
# A sentence of the model about itself: that it can't or won't rate, help or answer. What it says about the text ("I
# can't judge the accuracy of its dates", "I cannot give it more than 2") is none.
_STARTS: Final = r"(?:(?<![^\n.!?。！？।؟:;،,\-—])|(?<=[\n.!?。！？।؟:;] ))[ \t*_#\-]{0,8}"
_RATED: Final = (
    r"(?:this|that|it|such|these|those|your|any|either|anything|the (?:text|dialogue|dialog|conversation|material|"
    r"response|reply|answer|content|item|message|request|above))\b"
    r"(?! (?:more|higher|above|over|better|lower|as|a|an)\b)"
)
_REFUSALS: Final = {
    "en": (
        r"(?:(?:i['’]m|i am) (?:very |so |really |truly )?sorry|sorry|(?:i )?apologi[sz]e|apologies|my apologies|"
        r"as an? (?:ai|artificial|large|language)\b[^.\n]{0,60}?)[,.;:!—-]{0,2} ?"
        r"(?:but |however,? )?(?:i |that i )?(?:can['’]?t|cannot|can not|won['’]?t|will not|must decline|"
        r"have to decline|(?:am|['’]m) (?:not able|unable|not allowed|not permitted|not comfortable))\b"
        r"|(?:but )?i(?:['’]d| would| must| have to| need to| will(?: have to)?|['’]ll(?: have to)?)? "
        r"(?:respectfully |politely |kindly )?(?:rather )?(?:decline|refuse)\b"
        r"(?! (?:the (?:idea|notion)|to (?:believe|accept that)))"
        r"|(?:but )?i(?:['’]m| am) (?:not able|unable|not allowed|not permitted|not comfortable) (?:to |with )?"
        rf"(?:(?:rat|scor|grad|judg|assess|evaluat|review)(?:e|ing)? {_RATED}|(?:assist|help|comply|continue|engage|"
        r"fulfil|fulfill|participate|do (?:that|this|so))\b"
        r"|(?:provide|give|offer|assign|produce|return) (?:you )?(?:with )?(?:a|any|the|this|such a) "
        r"(?:\w+ )?(?:score|rating|grade|verdict|assessment|evaluation|judge?ment)\b"
        r"(?! (?:above|higher|of|over|more|better|lower|below|than|other)))"
        rf"|(?:but )?i (?:must|have to|will) refrain from (?:rat|scor|grad|judg|assess|evaluat)ing {_RATED}"
        rf"|(?:but )?i (?:won['’]?t|will not) be (?:rat|scor|grad|judg|assess|evaluat)ing {_RATED}"
        r"|(?:but )?i (?:can['’]?t|cannot|can not|could ?n['’]?t|won['’]?t|will not|do not wish to|don['’]t want to) "
        rf"(?:(?:rate|score|grade|judge|assess|evaluate|review)(?: {_RATED}|[.,!;]|\Z)"
        r"|(?:assist|help|comply|engage|participate)\b(?! but\b)(?! (?:thinking|feeling|noticing))"
        r"|continue (?:with )?(?:this|that)\b|do (?:that|this|so)\b|fulfil+ (?:this|that|your)\b"
        r"|(?:provide|give|offer|assign|produce|return) (?:you )?(?:with )?(?:a|any|the|this|such a) "
        r"(?:\w+ )?(?:score|rating|grade|verdict|assessment|evaluation|judge?ment)\b"
        r"(?! (?:above|higher|of|over|more|better|lower|below|than|other))"
        r"|answer (?:this|that|your)\b|respond to (?:this|that|your)\b|discuss (?:this|that)\b)"
    ),
    "ru": (
        r"(?:(?:извините|простите|прошу прощения|к сожалению|сожалею|как (?:языковая модель|ии\b|искусственный "
        r"интеллект)[^.\n]{0,60}?)[,.!—-]{0,2} ?)?(?:но )?(?:я )?"
        r"(?:(?:не (?:могу|буду|стану|смогу|в состоянии|имею (?:возможности|права))|отказываюсь|"
        r"вынужден[аы]? отказаться от|"
        r"должен отказаться|должна отказаться)(?: вам| тебе| этого| сейчас| в этом){0,2} "
        r"(?:оцени\w++|оценк\w++|ставить|поставить оценку|помо\w++|выполн\w++|продолж\w++|ответить|отвечать|"
        r"предостав\w++|обсужда\w++|дать оценку|давать оценк\w++|комментир\w++|это(?:го)? делать|сделать это)"
        r"(?! (?:выше|ниже|высоко|высше|на (?:\d|[а-я]+ балл)|больше|полност|точн))|отказываюсь(?=[.!\n]|\Z))"
    ),
    "ar": (
        r"(?:(?:عذر[اً]{1,2}|آسف|أنا آسف|أعتذر|للأسف|معذرة|المعذرة|مع الأسف|كنموذج لغوي[^.\n]{0,60}?)[،,.! ]{0,3})?"
        r"(?:لكن(?:ني|ي)? |ولكن(?:ني|ي)? |فأنا |أنا )?"
        r"(?:(?:لا (?:أستطيع|يمكنني|أقدر)|لن (?:أتمكن من|أستطيع|أقوم ب|أقيم)|لست قادر[اًة]{1,2} على|غير قادر على|أرفض|"
        r"أمتنع عن|يتعذر علي) ?(?:أن )?(?:ال)?"
        r"(?:تقييم|أقيم|أقيّم|مساعد|أساعد|إعطاء|تقديم|تنفيذ|إجابة|أجيب|متابعة|الإجابة|القيام)"
        r"(?!\w*(?: \w+){0,2} ب?(?:أكثر|أعلى|أقل|أدنى|أفضل)\b)|أرفض(?=[.!\n]|\Z))"
    ),
    "zh": (
        r"(?:(?:很?抱歉|对不起|對不起|很遗憾|很遺憾|不好意思|作为(?:一个|一名)?[^，。\n]{0,16})"
        r"[，,。！! ]{0,2})?(?:但是?|不过)?我?"
        r"(?:(?:无法|無法|不能|不可以|不便|不会|不會|拒绝|拒絕|恕我?(?:无法|不能))"
        r"(?:为您|为你|對此|对此|对这|对该|就此|给出|给|提供|进行)?"
        r"[^，。\n更高低满滿]{0,10}?(?:评分|评价|评估|打分|判断|協助|协助|帮助|"
        r"幫助|回答|完成此|继续|评判|評分|評價|評估|分数)(?!高|更高|为|超过)"
        r"|(?:拒绝|拒絕)(?=[。.!！\n]|\Z)|(?:这个|這個|此)?(?:请求|請求|要求)我?(?:帮不了|幫不了|做不到)(?=[。.!！\n]|\Z))"
    ),
    "ja": (
        r"(?:(?:大変)?(?:申し訳(?:ありません|ございません|ない)|すみません|恐れ入りますが|恐縮ですが|"
        r"残念ながら)(?:が|けれども|けど)?[、。,. ]{0,2}"
        r"[^。\n]{0,30}?(?:できません|できかねます|いたしかねます|出来ません|お断り|控えさせ|しません|できない)"
        r"|(?:この|本|その|当該)?(?:内容|対話|会話|テキスト|文章|文|依頼|リクエスト|ご要望|質問|要求)"
        r"(?:を|は|には|の|に)[^。\n]{0,12}?(?:評価|採点|回答|お答え|応答|対応|お応え)"
        r"[^。\n]{0,4}?(?:できません|できかねます|いたしかねます|出来ません|しません)"
        r"|(?:評価|採点|回答)(?:は|することは)?(?:できません|できかねます|出来ません|いたしかねます)"
        r"|[^。\n]{0,20}?(?:お断り(?:いた)?します|拒否します|差し控えます|控えさせていただきます))"
    ),
    "hi": (
        r"(?:(?:क्षमा करें|क्षमा कीजिए|माफ़? ?(?:करें|कीजिए|कीजिएगा)|मुझे खेद है|खेद है|दुर्भाग्य से|दुर्भाग्यवश)[,।! ]{0,3})?"
        r"(?:लेकिन |पर |कि )?(?:मैं |हम )(?![^।\n]{0,60}?(?:अधिक|ज़्यादा|ज्यादा|उच्च|ऊँच|ऊंच|बेहतर))"
        r"[^।\n]{0,40}?(?:मूल्यांकन|आकलन|रेट|रेटिंग|अंक|स्कोर|मदद|सहायता|उत्तर|यह काम|अनुरोध|"
        r"जवाब|जारी)[^।\n]{0,16}?"
        r"(?:नहीं (?:कर|दे|रख) ?(?:सकता|सकती|सकते|पाऊंगा|पाऊँगा|पाऊंगी|पाऊँगी)|नहीं (?:करूंगा|करूँगा|दूंगा|दूँगा)|असमर्थ|"
        r"(?:से|का|की) इनकार|से मना|इनकार)"
    ),
    "es": (
        r"(?:(?:me temo que|lo siento|lo lamento|disculp\w++|perd[oó]n\w*+|"
        r"lamentablemente|desafortunadamente|como (?:una? )?"
        r"(?:ia|inteligencia|modelo)\b[^.\n]{0,60}?)[,.;:! ]{0,2} ?)?(?:pero )?(?:yo )?"
        r"(?:(?:no (?:puedo|podr[ée]|podr[ií]a|voy a|me es posible|estoy en condiciones de|quiero)|me niego a|rechazo|"
        r"(?:debo|tengo que) (?:negarme a|rechazar|declinar)) "
        r"(?:evaluar|calificar|puntuar|valorar|juzgar|ayudar\w*+|asistir\w*+|responder|cumplir|continuar|atender|"
        r"hacer (?:eso|esto|lo que)|(?:dar\w*+|proporcionar\w*+|ofrecer\w*+|asignar\w*+|emitir) "
        r"(?:una?|ningun[ao]|la|esa|esta) (?:puntuaci[oó]n|calificaci[oó]n|nota|valoraci[oó]n|evaluaci[oó]n)"
        r"(?! (?:m[aá]s|mayor|superior|de|mejor)))(?! (?:m[aá]s|con (?:m[aá]s|un [1-9])))"
        r"|me niego(?=[.!\n]|\Z)|declino\b)"
    ),
}
_PATTERNS: Final = tuple(re.compile(_STARTS + rf"(?:{pattern})", re.IGNORECASE) for pattern in _REFUSALS.values())
# What stands in quotation marks is said by somebody else.
_QUOTED: Final = re.compile(
    '“[^”\n]{0,400}”|„[^“”\n]{0,400}[“”]|«[^»\n]{0,400}»|「[^」\n]{0,400}」|『[^』\n]{0,400}』|"[^"\n]{0,400}"'
)
_LONGEST_SEARCHED: Final = 4_000  # characters from the start and from the end


def refusal_in(text: str, material: str = "") -> str:
    """The sentence in which a model says of itself that it does not rate; empty where there is none.

    ``material`` is the rated text: what stands there is no sentence of the model's.
    """
    if len(text) > 2 * _LONGEST_SEARCHED:
        text = f"{text[:_LONGEST_SEARCHED]}\n{text[-_LONGEST_SEARCHED:]}"
    text = _QUOTED.sub(" “” ", text)
    for pattern in _PATTERNS:
        for hit in pattern.finditer(text):
            sentence = re.split(r"(?<=[.!?。！？।؟])|\n", text[hit.start() :].lstrip(" \t\n*_#-"), maxsplit=1)[
                0
            ].strip()
            if sentence and not (material and sentence.casefold() in material.casefold()):
                return sentence
    return ""
