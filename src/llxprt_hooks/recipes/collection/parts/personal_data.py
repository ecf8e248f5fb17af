"""Personal data in a text: addresses, and numbers of phones, cards and accounts.

Cards and accounts are checked by their check digits, so that other long numbers stay.
"""

from __future__ import annotations

import collections.abc
import ipaddress
import re


def is_card(text: str) -> bool:
    number = re.sub(r"\D", "", text)
    digits = [int(char) for char in number]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    shortest = 12 if number.startswith(MAESTRO) else 13
    return shortest <= len(digits) <= 19 and len(set(digits)) > 1 and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def is_iban(text: str) -> bool:
    plain = re.sub(r"\s", "", text).upper()
    moved = plain[4:] + plain[:4]
    return 15 <= len(plain) <= 34 and int("".join(str(int(char, 36)) for char in moved)) % 97 == 1


def is_public_address(text: str) -> bool:
    try:
        return ipaddress.ip_address(text).is_global
    except ValueError:
        return False


def is_public_address_6(text: str) -> bool:
    return text.count(":") > 2 and is_public_address(text)


def is_phone(text: str) -> bool:
    return 8 <= len(re.sub(r"\D", "", text)) <= 15 and not DATE.match(text)


def is_local_phone(text: str) -> bool:
    """Whether a number with the 0 that is dialed within a country has the digits that such numbers have."""
    return 9 <= len(re.sub(r"\D", "", text)) <= 12 and is_phone(text)


def is_announced_phone(text: str) -> bool:
    """Whether a number next to a word like `phone` can be one: without gaps, other numbers are as likely."""
    digits = re.sub(r"\D", "", text)
    return (9 if digits == text else 7) <= len(digits) <= 13 and not DATE.match(text)


def anything(text: str) -> bool:
    return True


SPACE = "[ \u00a0\u2007\u2009\u202f]"  # the ones that people and programs put between digits
DATE = re.compile(r"\d{1,2}[./ -]\d{1,2}[./ -](?:19|20)\d\d(?!\d)|(?:19|20)\d\d[./ -]\d{1,2}[./ -]\d{1,2}(?!\d)")
MAESTRO = ("5018", "5020", "5038", "5893", "6304", "6759", "6761", "6762", "6763")  # cards with twelve digits and more
GAP = rf"(?:{SPACE}|[./-])"
EXTENSION = r"(?:\s?(?:x|ext\.?)\s?\d{1,6})?(?![\d-]?\d)"
CALLED = (
    r"(?i)\b(?:phone|telephone|tel|mobile|cell|cellphone|fax|call|calling|dial|sms|whatsapp|answering|reached|(?:office|desk|home|work)(?=:))"
    r"(?:\s(?:me|us|him|her|them|at|on|is|under|number|no|nr)\b){0,3}[.:]?\s{0,2}"
)

# What to look for, what it has to pass to count, and what takes its place.
KINDS = [
    (r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+", anything, "[email]"),
    (
        rf"\b[A-Za-z]{{2}}\d{{2}}(?:{SPACE}?[0-9A-Za-z]{{4}}){{2,7}}(?:{SPACE}?[0-9A-Za-z]{{1,4}})?\b",
        is_iban,
        "[account]",
    ),
    (rf"(?<![\w.-])\d(?:(?:{SPACE}|[-.])?\d){{11,18}}(?![\d-])", is_card, "[card]"),
    (r"(?<![\d-])(?!000|666|9\d\d)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\d-])", anything, "[social security number]"),
    (rf"(?<![\w.+])\+\d{{1,3}}(?:(?:{SPACE}|[.()/-]){{0,2}}\d){{6,13}}{EXTENSION}", is_phone, "[phone]"),
    (
        rf"(?<![\w.+-])(?<!\d{SPACE})00\d{{1,3}}{GAP}\(?\d(?:(?:{SPACE}|[.()/-]){{0,2}}\d){{6,11}}{EXTENSION}",
        is_phone,
        "[phone]",
    ),
    (rf"(?<![\d.-])(?:\([2-9]\d{{2}}\){SPACE}?|[2-9]\d{{2}}{GAP})\d{{3}}{GAP}\d{{4}}{EXTENSION}", is_phone, "[phone]"),
    (
        rf"(?<![\w.-])(?<!\d{SPACE})\(?0[1-9]\d{{0,3}}\)?(?:{GAP}\d{{2,4}}){{2,5}}(?!{SPACE}?\d|[-.]\d|\w)",
        is_local_phone,
        "[phone]",
    ),
    (
        rf"(?<![\w.-])(?<!\d{SPACE})\(?0[1-9]\d{{0,3}}\)?{GAP}\d{{5,8}}(?!{SPACE}?\d|[-.]\d|\w)",
        is_local_phone,
        "[phone]",
    ),
    (rf"{CALLED}(?P<number>\(?\d(?:[()]?{GAP}?\d){{6,12}})(?![\d-]?\d)", is_announced_phone, "[phone]"),
    (
        rf"(?i)(?<![\w.-])(?P<number>\(?\d(?:[()]?{GAP}?\d){{6,12}})(?=[ -]?(?:office|fax|mobile|cell|desk|phone)\b)",
        is_announced_phone,
        "[phone]",
    ),
    (r"(?<![\w:.])(?:[0-9a-fA-F]{0,4}:){3,7}[0-9a-fA-F]{1,4}(?![\w:])", is_public_address_6, "[address]"),
    (r"(?<![\d.v])(?<!ersion )(?:\d{1,3}\.){3}\d{1,3}(?![\d.]\d)", is_public_address, "[address]"),
]


def without_personal_data(text: str, only: collections.abc.Collection[str] = ()) -> str:
    """The text with personal data replaced: all kinds, or only those that these words take the place of."""
    for pattern, counts, instead in KINDS:
        if not only or instead in only:
            text = without_kind(text, pattern, counts, instead)
    return text


def without_kind(text: str, pattern: str, counts: collections.abc.Callable[[str], bool], instead: str) -> str:
    def replaced(found: re.Match[str]) -> str:
        number = found.groupdict().get("number", found.group())
        return found.group().replace(number, instead) if counts(number) else found.group()

    return re.sub(pattern, replaced, text)
