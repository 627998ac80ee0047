"""Files as large as anybody asks for: dialogues in a dozen languages and scripts, ratings and verdicts about them.

The same size and seed give the same bytes. Nothing of it was said by anybody; every text ends in a number of its own.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import orjson

PHRASES = {
    "et": ("Tere! Minu pakk on kadunud.", "Vaatan kohe järele, kus see on.", "Aitäh, ootan siis õhtuni."),
    "ru": ("Здравствуйте! Где моя посылка?", "Проверю и сразу отвечу.", "Спасибо, подожду до вечера."),
    "ar": ("مرحبًا، لم تصل الطردة بعد.", "ســـأتحقق من الأمر الآن.", "شكرًا، سأنتظر حتى المساء."),
    "he": ("שלום, החבילה שלי לא הגיעה.", "אבדוק מיד \u200f(מספר 12)\u200e ואחזור.", "תודה, אחכה עד הערב."),
    "fa": ("سلام، بستهٔ من نرسیده است.", "همین حالا می‌بینم کجاست.", "ممنون، تا شب صبر می‌کنم."),
    "hi": ("नमस्ते, मेरा पार्सल खो गया है।", "मैं अभी देखता हूँ कि वह कहाँ है।", "धन्यवाद, मैं शाम तक रुकूँगा।"),
    "th": ("สวัสดีค่ะ พัสดุของฉันหายไป", "ขอตรวจสอบสักครู่นะครับ", "ขอบคุณค่ะ จะรอถึงเย็น"),
    "ja": ("こんにちは、荷物が届きません。", "すぐにお調べします。", "ありがとう、夕方まで待ちます。"),
    "zh": ("你好，我的包裹没有到。", "我马上查一下它在哪里。", "谢谢，我等到晚上。"),
    "ko": ("안녕하세요, 소포가 안 왔어요.", "바로 확인해 보겠습니다.", "감사합니다, 저녁까지 기다릴게요."),
    "vi": ("Xin chào, gói hàng của tôi bị mất.", "Tôi sẽ kiểm tra ngay.", "Cảm ơn, tôi sẽ đợi đến tối."),
    "en": ("Hello, my parcel is lost 📦.", "Let me look right away 👩🏽‍💻.", "Thanks, I shall wait until tonight."),
}
SPEAKERS = ("customer", "agent")
RATERS = ("rater 1", "rater 2")
CRITERIA = {"fluency": 4, "coherence": 2}  # how many points
BLANK = 97  # every so manyth rating has no score


def dialogues(path: Path, size: int) -> int:
    """A JSONL file of about ``size`` bytes; how many dialogues there are."""
    return _written(path, size, _dialogues(random.Random(1)))


def _dialogues(chance: random.Random) -> Iterator[bytes]:
    languages = list(PHRASES)
    number = 0
    while True:
        number += 1
        language = languages[number % len(languages)]
        turns = [
            {"speaker": SPEAKERS[turn % 2], "text": _text(language, chance, number)}
            for turn in range(chance.randint(4, 12))
        ]
        row = {"id": f"d{number}", "language": language, "model": f"model {number % 3}", "turns": turns}
        yield orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)


def _text(language: str, chance: random.Random, number: int) -> str:
    return " ".join(chance.choices(PHRASES[language], k=chance.randint(1, 9))) + f" #{number}"


def ratings(path: Path, size: int, items: int) -> tuple[int, int]:
    """A CSV file of at most about ``size`` bytes: a reason with each, every 97th blank; how many rows and scores."""
    rows = _written(path, size, _ratings(items, random.Random(2)), b"item,rater,criterion,score,rationale\r\n")
    return rows, rows - rows // BLANK


def _ratings(items: int, chance: random.Random) -> Iterator[bytes]:
    asked = product(range(1, items + 1), RATERS, CRITERIA.items())
    for place, (number, rater, (criterion, points)) in enumerate(asked, start=1):
        score = chance.randrange(points) if place % BLANK else ""
        why = _text(chance.choice(list(PHRASES)), chance, number)
        yield f'd{number},{rater},{criterion},{score},"{why}"\r\n'.encode()


def verdicts(path: Path, size: int, items: int) -> int:
    """A JSONL file of at most about ``size`` bytes: two judges, one raw reply for both criteria; how many rows."""
    return _written(path, size, _verdicts(items, random.Random(3)))


def _verdicts(items: int, chance: random.Random) -> Iterator[bytes]:
    for number in range(1, items + 1):
        for judge in ("judge-a", "judge-b"):
            scores = {criterion: chance.randrange(points) for criterion, points in CRITERIA.items()}
            why = _text(chance.choice(list(PHRASES)), chance, number)
            reply = orjson.dumps({"scores": scores, "why": why}).decode()
            for criterion, score in scores.items():
                row = {"item": f"d{number}", "judge": judge, "criterion": criterion, "score": score, "rationale": why}
                yield orjson.dumps({**row, "reply": reply}, option=orjson.OPT_APPEND_NEWLINE)


def _written(path: Path, size: int, lines: Iterator[bytes], head: bytes = b"") -> int:
    """Write lines until the file is large enough or they end; how many."""
    count, there = 0, len(head)
    with path.open("wb") as file:
        file.write(head)
        for line in lines:
            file.write(line)
            count += 1
            there += len(line)
            if there >= size:
                break
    return count
