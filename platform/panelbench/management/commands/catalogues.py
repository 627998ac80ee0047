"""Update the catalogues in `locale/` with the sentences that the code marks for translation, and compile them.

The catalogue of a language in COMPLETE_LANGUAGES has all sentences. The others have those that an annotator sees, and
those that are translated already. For a checkout; docs/translating.md explains how to use it. Uses Babel, so GNU
gettext is not needed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator
from copy import deepcopy
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import allauth
from babel.messages.catalog import Catalog, Message
from babel.messages.extract import DEFAULT_KEYWORDS, extract
from babel.messages.mofile import read_mo, write_mo
from babel.messages.pofile import read_po, write_po
from django.conf import settings
from django.core.management.base import BaseCommand
from django.utils.translation import to_locale
from django.utils.translation.template import templatize

SUFFIXES = ("html", "txt", "py")
FOLDERS = ("templates", "platform", "annotation", "judging", "analytics")
KEYWORDS = {
    **DEFAULT_KEYWORDS,
    **{f"{name}_lazy": DEFAULT_KEYWORDS[name] for name in ("gettext", "ngettext", "pgettext")},
    **dict.fromkeys(("gettext_noop", "translatable", "Words", "Message"), DEFAULT_KEYWORDS["gettext"]),
}
_CALL = re.compile(rf"\b(?:{'|'.join(KEYWORDS)})\s*\(".encode())

# What an annotator can see, on pages and in mails; the templates bring along what they include and extend.
PAGES = {
    "accounts": ("erase", "home", "join", "join_closed", "me", "tokens"),
    "annotation": (
        *(
            "desk",
            "done",
            "home",
            "take",
            "scored",
            "work",
            "asked",
            "before_work",
            "closing",
            "desk_guidelines",
            "feedback",
            "kept_draft",
            "not_theirs",
            "submitted_already",
        ),
        *("writing/own_texts", "writing/write"),
        *("prompts/collections", "prompts/collection", "prompts/write", "prompts/prompt"),
    ),
    ".": ("403", "404", "429", "500", "503", "507"),
}
MODULES = {
    "annotation": (
        *("checkup/written_languages", "desk/*", "duty_settings", "evidence", "models/qualification", "questionnaires"),
        *("collection/prompt_writing", "collection/texts", "models/collection", "models/writing"),
        *("views/prompts", "views/writing"),
        *("qualification/exams", "qualification/gate", "qualification/standings"),
    ),
    "platform/accounts": (
        "access",
        "audit",
        "forms",
        "invitations",
        "models",
        "outages",
        "passwords",
        "views/people",
        "views/trail",
        "views/projects",
        "views/own_account",
    ),
    "platform/panelbench": ("pages",),
}
# Functions and attributes of classes with words for annotators, in modules that otherwise speak to leads.
PARTS = {
    "annotation/allocation.py": ("criteria_of",),
    "annotation/checkup/written_languages.py": ("OtherScript.says", "OtherLanguage.says"),
    "platform/accounts/people.py": ("accept", "find_invitation"),
    "platform/accounts/removal.py": ("erase_user",),
}
# Where the part of a module begins that only leads and operators see, and where it ends.
LEADS_ONLY = {
    "annotation/checkup/written_languages.py": ("# --- the checks", ""),
    "annotation/collection/texts.py": ("# --- duties to write", "# --- what is shown"),
    "annotation/desk/threads.py": ("# --- for leads", ""),
    "annotation/duty_settings.py": ("class DutySettings", "# --- reminders"),
    "annotation/views/prompts.py": ("class CollectionForm", "# --- writing"),
    "annotation/views/writing.py": ("# --- the leads' pages", ""),
    "platform/accounts/audit.py": ("# --- the trail of a project", ""),
    "platform/accounts/models.py": ("class JobQuerySet", ""),
    "platform/panelbench/pages.py": ("_PROJECT_LINKS", "# --- errors"),
    "templates/annotation/prompts/collection.html": ('<section class="panel" aria-labelledby="matrix-head">', ""),
}

# The packages' pages, mails and form errors that an annotator can see. Where a package's own catalogues lack a
# translation into a language, ours has it.
PACKAGES = {
    "allauth": (
        "account/adapter.py",
        "account/forms.py",
        "mfa",
        "templates/account",
        "templates/mfa",
        "templates/usersessions",
    ),
    "django": ("forms/fields.py", "core/validators.py", "contrib/auth/password_validation.py"),
}
INSIDE_MARKUP = ("Forgot your password?",)  # what the extractor does not find in the packages
INSTALLED = Path(allauth.__file__).parent.parent
OWN_CATALOGUES = ("allauth/locale", "django/conf/locale", "django/contrib/auth/locale")
# Ways to sign in and up that Panelbench does not offer, and what its forms never ask.
_PAGE_NOT_SHOWN = re.compile(
    r"/(admin|apps|models)|_code[._]|phone|signup|unknown_account|verif\w+_|email_change\.html|warn_no_email"
)
_NOT_ASKED = re.compile(
    r"phone|username|^Login$|select only one|IPv|slug|file|decimal|digit|step size|domain|%\(protocol\)|complete value",
    re.IGNORECASE,
)


def sources(root: Path) -> Iterator[Path]:
    """All files that can contain marked sentences."""
    for folder in FOLDERS:
        yield from _files(root / folder)


def extracted(root: Path, paths: Iterable[Path]) -> Catalog:
    """A catalogue of the marked sentences in ``paths``, without translations."""
    catalogue = Catalog(fuzzy=False)
    for path in paths:
        code = _as_python(path)
        if not _CALL.search(code):  # most modules say nothing, and Babel takes long over each
            continue
        marked = extract("python", BytesIO(code), KEYWORDS, ["Translators:"], {"encoding": "utf-8"})
        for line, message, comments, context in marked:
            place = (path.relative_to(root).as_posix(), line)
            catalogue.add(message, locations=[place], auto_comments=comments, context=context)
    return catalogue


def _as_python(path: Path) -> bytes:
    """The file as Python. Django's `templatize` replaces everything in a template except its sentences; indentation
    is removed. Calls inside f-strings, which Babel reads as plain text before Python 3.12, are repeated at the end."""
    code = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        code = "\n".join(line.strip() for line in templatize(code, origin=str(path)).splitlines())
    elif _CALL.search(code.encode()):
        formatted = (node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.JoinedStr))
        calls = {ast.unparse(call) for node in formatted for call in ast.walk(node) if isinstance(call, ast.Call)}
        code = "\n".join([code, *sorted(calls)])
    return code.encode()


def _key(message: Message) -> tuple[str, str | None]:
    """What identifies a sentence; of several plural forms, the first."""
    return (message.id if isinstance(message.id, str) else message.id[0], message.context)


def _only(catalogue: Catalog, keys: set[tuple[str, str | None]]) -> Catalog:
    chosen = Catalog(fuzzy=False)
    for message in catalogue:
        if message.id and _key(message) in keys:
            chosen[message.id] = deepcopy(message)
    return chosen


def with_parts(root: Path, name: str) -> Iterator[str]:
    """A template's name and those of all it includes and extends."""
    yield name
    parts = re.findall(r'{%\s*(?:include|extends)\s+"([^"]+)"', (root / "templates" / name).read_text(encoding="utf-8"))
    for part in parts:
        if (root / "templates" / part).exists():  # the others are allauth's
            yield from with_parts(root, part)


def annotators_templates(root: Path) -> list[Path]:
    """The templates of all pages that an annotator can see."""
    pages = [f"{folder}/{name}.html" for folder, names in PAGES.items() for name in names]
    doors = [
        path.relative_to(root / "templates").as_posix() for path in sorted((root / "templates/account").glob("*.html"))
    ]
    names = dict.fromkeys(name for page in (*pages, *doors) for name in with_parts(root, page))
    return [root / "templates" / name for name in names]


@cache
def annotators_sentences(root: Path) -> Catalog:
    """A catalogue of the sentences that an annotator can see, without those of packages."""
    named = [(root / folder, f"{name}.py") for folder, names in MODULES.items() for name in names]
    modules = [path for folder, name in named for path in sorted(folder.glob(name))]
    mails = sorted((root / "templates").glob("account*/**/*.txt"))
    catalogue = extracted(root, [*annotators_templates(root), *modules, *mails])
    for name, parts in PARTS.items():
        own = _lines_of_parts(root / name, parts)
        for message in extracted(root, [root / name]):
            if any(line in own for _name, line in message.locations):
                catalogue.add(message.id, locations=message.locations, context=message.context)
    leads_only = {name: _lines(root / name, *marks) for name, marks in LEADS_ONLY.items()}
    for message in list(catalogue):
        if message.locations and all(line in leads_only.get(name, ()) for name, line in message.locations):
            catalogue.delete(message.id, message.context)
    return catalogue


def _lines_of_parts(path: Path, parts: Collection[str]) -> set[int]:
    """The lines of functions, and of the attributes of classes (``Class.attribute``)."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    named: list[tuple[str, ast.stmt]] = []
    for part in body:
        if isinstance(part, ast.FunctionDef):
            named.append((part.name, part))
        elif isinstance(part, ast.ClassDef):
            assigned = [node for node in part.body if isinstance(node, ast.Assign)]
            named += [(f"{part.name}.{ast.unparse(node.targets[0])}", node) for node in assigned]
    nodes = [node for name, node in named if name in parts]
    return {line for node in nodes for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}


def _lines(path: Path, start: str, end: str) -> range:
    """The lines from the one with the text ``start`` to the one with ``end``, or to the last one."""
    lines = path.read_text(encoding="utf-8").splitlines()
    first = next(number for number, line in enumerate(lines, start=1) if start in line)
    last = next((number for number, line in enumerate(lines, start=1) if end and end in line), len(lines) + 1)
    return range(first, last)


@cache
def packages_sentences(root: Path) -> Catalog:
    """A catalogue of the sentences of PACKAGES that an annotator can see, without the templates that ours replace."""
    catalogue = Catalog(fuzzy=False)
    for package, parts in PACKAGES.items():
        folder = INSTALLED / package
        inside = [path for part in parts for path in _files(folder / part)]
        for message in extracted(INSTALLED, (path for path in inside if _is_shown(root, path.relative_to(folder)))):
            if message.id and not _NOT_ASKED.search(str(message.id)):
                catalogue[message.id] = message
    for sentence in INSIDE_MARKUP:
        catalogue.add(sentence)
    return catalogue


def _files(path: Path) -> list[Path]:
    """The file itself, or the modules and templates of a folder."""
    return [path] if path.is_file() else [file for suffix in SUFFIXES for file in sorted(path.rglob(f"*.{suffix}"))]


def _is_shown(root: Path, path: Path) -> bool:
    is_replaced = path.parts[0] == "templates" and (root / path).exists()
    return not is_replaced and not _PAGE_NOT_SHOWN.search(f"/{path.as_posix()}")


def lacking_in_packages(root: Path, language: str) -> Catalog:
    """The sentences of `packages_sentences` that the packages have not translated."""
    files = [INSTALLED / folder / to_locale(language) / "LC_MESSAGES/django.mo" for folder in OWN_CATALOGUES]
    known = {_key(message) for path in files if path.exists() for message in read_mo(BytesIO(path.read_bytes()))}
    return _only(packages_sentences(root), {_key(message) for message in packages_sentences(root)} - known)


def read_catalogue(path: Path) -> Catalog:
    with path.open("rb") as file:
        return read_po(file, locale=path.parent.parent.name)


def compiled(catalogue: Catalog) -> bytes:
    """The catalogue in gettext's binary format, without untranslated sentences."""
    translated = deepcopy(catalogue)
    for message in translated:
        if not any(message.string or ()):  # as many empty forms as there are plurals count for Babel as a translation
            message.string = ""
    target = BytesIO()
    write_mo(target, translated)
    return target.getvalue()


def catalogue_path(root: Path, language: str) -> Path:
    return root / "locale" / to_locale(language) / "LC_MESSAGES" / "django.po"


def sentences_for(root: Path, language: str, every: Catalog) -> Catalog:
    """The sentences for the catalogue of a language: ``every`` for a complete one, else those that an annotator sees
    and those that are translated already; and what packages have not translated, or we translate better."""
    catalogue = read_catalogue(catalogue_path(root, language))
    translated = {_key(message) for message in catalogue if message.id and any(message.string or ())}
    if language in settings.COMPLETE_LANGUAGES:
        chosen = deepcopy(every)
    else:
        chosen = _only(every, translated | {_key(message) for message in annotators_sentences(root)})
    ours = {_key(message) for message in lacking_in_packages(root, language)} | translated
    for message in _only(packages_sentences(root), ours):
        if message.id and chosen.get(message.id, message.context) is None:
            chosen[message.id] = message
    return chosen


def refreshed_catalogue(path: Path, template: Catalog) -> Catalog:
    """Update the catalogue at ``path`` to the sentences of the template, keep their translations, and compile it."""
    catalogue = read_catalogue(path)
    # A copy: a new message would be shared with the next catalogue, which has other plural forms.
    catalogue.update(deepcopy(template), no_fuzzy_matching=True, update_creation_date=False)
    with path.open("wb") as file:
        write_po(file, catalogue, width=120, sort_by_file=True, include_lineno=False, ignore_obsolete=True)
    path.with_suffix(".mo").write_bytes(compiled(catalogue))
    return catalogue


class Command(BaseCommand):
    help = "Update and compile the catalogues in locale/ from what the code marks for translation."

    def handle(self, *args: Any, **options: Any) -> None:
        root = settings.CHECKOUT_DIR
        every = extracted(root, sources(root))
        for language, _name in settings.LANGUAGES:
            path = catalogue_path(root, language)
            if not path.exists():  # English
                continue
            catalogue = refreshed_catalogue(path, template := sentences_for(root, language, every))
            done = sum(1 for message in catalogue if message.id and message.string and all(message.string))
            self.stdout.write(f"{language}: {done} of {len(template)} sentences translated, of {len(every)} in all")
