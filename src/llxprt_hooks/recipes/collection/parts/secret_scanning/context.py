"""What only the words around it show to be a secret: the name it is assigned to, the option or service it is for."""

from __future__ import annotations

import collections.abc
import re

from llxprt_hooks.recipes.collection.parts.secret_scanning.values import (
    REFERENCE,
    is_code_name,
    is_literal,
    is_put_in_later,
    is_random,
    may_be_password,
)

# Words that the name of a secret has, in lower case, and what has to be before the last two.
NAME_WORD = re.compile("passw(?:or)?d|passphrase|passcode|pass|pwd|secret|token|credential|bearer|key")
KEY_OF = re.compile(
    r"(?i)(?:api|app|access|auth|private|encryption|encrypt|signing|master|account|storage|service|license|shared|session"
    r"|jwt|hmac|webhook|admin|client|consumer|subscription|insert|ingest|secret)[_. -]?$"
)
# Names that have such a word and are of something else: passwordField, next_token, getPassword("…").
ABOUT = (
    r"(?:type|field|name|url|uri|path|file|dir|folder|env|header|label|prompt|hint|regex|pattern|length|len|count|limit|policy|expiry"
    r"|expires|expiration|ttl|id|class|manager|mgr|provider|store|error|message|msg|validator|placeholder|title|text|format|schema"
    r"|hash|hasher|input|form|rotation|version|algorithm|scope|endpoint|address|arn|ref|var|variable|index|size|bits|strength"
    r"|column|param|parameter|description|help|usage|page|link|mode|kind|status|enabled|required|generator|factory|handler"
    r"|reset|template|chars|alphabet|charset|characters|selector|alias|group|option|rule|score|spec|range)s?"
)
ABOUT_WORD = re.compile(ABOUT)
ABOUT_SECRETS = re.compile(rf"(?is).*{ABOUT}")
OF_ANOTHER_KIND = re.compile(
    r"(?i)(?:page|pagination|next|starting|continuation|cursor|sync|lock|change|purchase|stop|pad|eos|bos|sep|unk|cls|mask|csrf|xsrf"
    r"|authenticity|forgery|verification|idempotency|cancellation|public|publickey|forgot|reset|com|by)[_.-]?$"
)
GETS = re.compile(
    r"(?i)(?:get|find|fetch|read|load|lookup|has|is|check|validate|verify|hash|show|hide|delete|remove|ask|input|prompt|describe)"
    r"\w{0,20}[_.]?$"
)

# What it is, what is before the name of a secret, what follows it, and whether it counts in files of programs too.
AFTER_NAME = [
    (
        "a secret in an assignment",
        "",
        (
            r"(?P<rest>[\w.-]{0,24})(?P<close>\\?['\"`\])]{0,3})\s{0,4}(?::\s?[\w.\[\]|?]{1,20}\s{0,2})?"
            r"(?P<sign>[:?|+]{0,2}={1,3}>?|!={1,2}|:|,|\(|<-)\s{0,6}[rbfuLN@]{0,2}\\{0,3}['\"`]{1,2}(?P<value>[^'\"`\s]{5,200})['\"`]"
        ),
        True,
    ),
    (
        "a secret in an XML element",
        r"<[\w:.-]{0,30}$",
        r"(?P<rest>[\w.-]{0,24})>\s{0,9}(?P<value>[^<\s]{6,200})\s{0,9}</",
        True,
    ),
    (
        "a secret in an XML element",
        r"(?:key|name)\s?=\s?['\"][\w:. -]{0,30}$",
        r"(?P<rest>[\w.-]{0,24})['\"]\s{1,4}value\s?=\s?['\"](?P<value>[^'\"<\s]{5,200})['\"]",
        True,
    ),
    (
        "a password in a sentence",
        "",
        r"\s{1,2}(?:is|was|are|to|as|will be|set to|=)\s{0,2}:?\s{0,2}['\"`](?P<value>[^'\"`\s]{5,200})['\"`]",
        True,
    ),
    (
        "a password in SQL",
        r"(?i)\b(?:role|user|login|encrypted|with|set)[^;\n]{0,40}[ \t]$",
        r"\s{0,4}=?\s{0,4}\(?\s{0,4}N?'(?P<literal>[^'\s]{4,200})'",
        True,
    ),
    (
        "a secret in a list of variables",
        r"(?i)name['\"]?\s{0,4}[:=]\s{0,4}['\"]?[\w.-]{0,30}$",
        r"(?P<rest>[\w.-]{0,24})['\"]?,?\s{1,40}['\"]?value['\"]?\s{0,4}[:=]\s{0,4}['\"]?(?P<bare>[^\s'\"`,]{6,200})",
        False,
    ),
    (
        "a secret in an assignment",
        "",
        (
            r"(?P<rest>[\w.-]{0,24})(?P<close>['\"\]]{0,2})[ \t]{0,4}(?P<sign>[:?]{0,2}=|:|%3D)"
            r"[ \t]{0,4}(?P<bare>[^\s'\"`;,&|<>]{6,200})"
        ),
        False,
    ),
    (
        "a secret in an assignment",
        r"(?im)^\s{0,9}(?:env|arg|setenv|setx)\s{1,4}[\w.-]{0,30}$",
        r"(?P<rest>[\w.-]{0,24})[ \t]{1,4}(?P<bare>[^\s'\"`=;,&|<>]{6,200})[ \t]{0,9}(?![^\r\n])",
        False,
    ),
    (
        "a secret in a command",
        r"(?:^|\s)--?[\w-]{0,30}$",
        r"(?P<rest>[\w-]{0,24})(?:=|\s{1,4})['\"]?(?P<bare>[^\s'\"-][^\s'\"]{5,200})",
        False,
    ),
]
# What it is, texts in lower case that such a secret has one of, and the pattern.
AFTER_OTHERS = [
    (
        "a secret in a header",
        "authorization",
        (
            r"(?i)\bauthorization['\"\]]{0,2}\s{0,3}[:=,]\s{0,3}['\"]?(?:bearer|basic|token|digest|api-?key|api-token|key|ssws|splunk)"
            r"[ :=]\s{0,3}(?:token=)?['\"]?(?P<value>[\w.~+/=-]{8,})"
        ),
    ),
    (
        "a password in SQL",
        "identified",
        r"(?i)\bidentified\s{1,4}(?:with\s{1,4}\S{1,40}\s{1,4})?(?:by|as)\s{1,4}['\"](?P<value>[^'\"\s]{4,200})['\"]",
    ),
    (
        "a password in a call",
        "credential auth directoryentry login logon sign connect",
        (
            r"(?i)(?:credentials?|basic_?auth|auth|directoryentry|login|logon|authenticate|sign_?in|connect)['\"]?\s{0,2}[=:]?\s{0,2}\("
            r"(?:\s{0,4}['\"][^'\"\s]{0,80}['\"]\s{0,2},){1,2}\s{0,4}['\"](?P<value>[^'\"\s]{4,200})['\"]"
        ),
    ),
    (
        "a password in a command",
        "-u --creds",
        (
            r"\s(?:-u|-U|--user|--userpwd|--creds)[= ]?['\"]?\{?[\w.@+{}-]{1,60}['\"]?[:%]"
            r"['\"]?(?P<value>[^\s'\"/@][^\s'\"]{3,100})"
        ),
    ),
    (
        "a password in a command",
        "sshpass psexec login unzip zip mosquitto sqlcmd rdesktop freerdp",
        (
            r"(?i)\b(?:sshpass|psexec(?:64)?(?:\.exe)?|(?:docker|podman|az|oc|registry) login|unzip|zip|mosquitto_\w{3}"
            r"|sqlcmd|rdesktop|\wfreerdp)\b[^|;\n]{0,120}\s[-/][pP][ :=]?['\"]?(?P<literal>[^\s'\"$-][^\s'\"]{3,100})"
        ),
    ),
    (
        "a password in a command",
        "mysql mariadb",
        r"\b(?:mysql|mariadb)[\w-]{0,8}\s[^|;\n]{0,80}-p(?P<value>[^\s'\"-][^\s'\"]{5,60})",
    ),
    (
        "a password in a command",
        "redis-cli ldap",
        (
            r"\b(?:redis-cli\s[^|;\n]{0,80}(?:-a|--pass)[ =]|ldap\w{3,10}\s[^|;\n]{0,160}-w ?)"
            r"['\"]?(?P<literal>[^\s'\"$-][^\s'\"]{4,100})"
        ),
    ),
    (
        "a password in a command",
        "htpasswd",
        r"\bhtpasswd\s{1,4}-\w{0,5}b\w{0,5}\s{1,4}(?:[^\s]{1,60}\s{1,4}){1,2}['\"]?(?P<literal>[^\s'\"$]{5,100})",
    ),
    ("a password in a command", "pass:", r"\bpass(?:in|out)?[ =]{0,2}['\"]?pass:(?P<literal>[^\s'\"$]{4,100})"),
    (
        "a password in a command",
        "echo printf",
        (
            r"\b(?:echo|printf)\s{1,4}(?:-n\s{1,4})?['\"]?(?P<value>[^\s'\"|;$]{6,100})['\"]?"
            r"\s{0,4}\|\s{0,4}(?:sudo\s{1,4}-S|[\w-]{1,20} (?:registry )?login|passwd|gpg)"
        ),
    ),
    (
        "a password in a file of accounts",
        "machine",
        r"\bmachine\s{1,4}\S{1,200}\s{1,9}login\s{1,4}\S{1,100}\s{1,9}password\s{1,4}(?P<literal>\S{4,200})",
    ),
    (
        "a password in a file of accounts",
        ":5432: :*:",
        r"(?m)^[\w.*-]{1,80}:(?:5432|\*):[\w*-]{1,60}:[\w*-]{1,60}:(?P<value>[^\s:]{4,100})$",
    ),
    (
        "a password in a file of settings",
        "requirepass masterauth",
        r"(?m)^\s{0,9}(?:requirepass|masterauth)\s{1,9}['\"]?(?P<value>[^\s'\"]{6,200})",
    ),
]
ADDRESS = re.compile(r"://(?P<user>[^\s/:@'\"<>?#]{0,80}):(?P<value>[^\s/@'\"<>]{3,100})@(?P<host>[\w.\[-]{1,80})")
LOCAL_HOSTS = (
    "localhost",
    "127.",
    "0.0.0.0",
    "[",
    "db",
    "host",
    "postgres",
    "mysql",
    "redis",
    "mongo",
    "rabbit",
    "example.",
)

# A long random value shortly after one of these words is a key.
KEY_WORDS = ("key", "secret", "token", "password", "passwd", "pwd", "access", "private", "auth", "credential",
             "credentials", "bearer", "passphrase", "login", "license", "crumb", "pat")  # fmt: skip
# Or after the name of a service that gives out such keys.
SERVICES = set(
    """
    adafruit airbrake airtable algolia amplitude anypoint apify asana axonaut ayrshare bitly bitrise blocknative box
    bugsnag buildkite campayn censys chartmogul circleci clearbit clickup cloudflare cloudinary codacy codecov
    codeclimate cohere coinbase contentful coveralls currencylayer databox datadog deepgram deepl digitalocean discord
    docusign dropbox droneci dynalist elasticemail etherscan eventbrite exchangerate facebook fastforex fastly finnhub
    firebase flickr foursquare freshdesk fullstory geocodio getresponse giphy gitter grafana gumroad hellosign
    heroku honeybadger hubspot infura intercom ipdata ipgeolocation ipinfo ipstack jotform jumpcloud
    kraken kucoin launchdarkly lastfm linode livechat logdna loggly logz lokalise mailchimp mailgun mailjet mapbox
    mapquest mattermost meraki messagebird mixpanel moonclerk nasdaq netlify newrelic newsapi noaa nytimes okta
    onesignal opencage opencagedata openai openuv openweather openweathermap opsgenie pagerduty pastebin pipedrive plaid
    planyo pendo postmark posthog pushbullet pusher pyowm quandl rapidapi refiner rollbar scrapestack
    sendbird sendgrid sentry shodan smartsheet snyk sonarcloud sonarqube spoonacular spotify sqreen
    squarespace statuspage storyblok strava stripe sumologic supabase surveymonkey telegram tiingo todoist toggl tomtom
    travisci trello twilio twitch twitter typeform unsplash urlscan virustotal vultr wandb weatherbit
    weatherstack webex woocommerce yandex youtube zapier zendesk zenrows zoho
    """.split()
)
NO_KEY_WORDS = set(
    """
    sha hash digest checksum commit integrity fingerprint thumbprint etag uuid guid public pub pubkey publickey revision
    rev tree blob version primary foreign partition sort cache row idempotency csrf xsrf authenticity page pagination
    next starting purchase lock change continuation cursor signature resolved monkey turkey donkey hockey whiskey hotkey
    serial image chunk trace span request correlation transaction md crc ref model arn objectid verification import from
    """.split()
)
LONG_TEXT = re.compile(r"[0-9A-Za-z+/_~.%-]{10,}={0,2}")
LEADING_WORDS = re.compile(r"(?:[A-Za-z]{1,40}[-_.])*")


# A part of an address that is not a parameter with the name of a key, a part of a resource's name, or a version.
OTHER_PLACE = re.compile(
    r"(?i)://(?!\S*[?&][\w.-]*(?:key|token|secret|auth|password|pwd|sig)=$)\S*$|arn:\S*$|[#@]$|\bh1:$"
)


def in_context(text: str, name: str, bare: bool) -> collections.abc.Iterator[tuple[str, str, int]]:
    """What the words around it show to be a secret: its kind, the text, and where it begins."""
    if len(text) <= 200 and not re.search(r"\s", text) and is_name_of_secret(name) and may_be_password(text):
        yield "a secret in an argument", text, 0
    lower = text.lower() if len(text.lower()) == len(text) else text
    yield from after_names(text, lower, bare)
    for kind, parts, pattern in AFTER_OTHERS:
        if any(part in lower for part in parts.split()):
            yield from ((kind, *each) for each in map(assigned, re.finditer(pattern, text)) if each)
    for found in ADDRESS.finditer(text):
        if not is_for_everybody(found):
            yield "a password in an address", found["value"], found.start("value")
    for found in LONG_TEXT.finditer(text):
        secret = key_after_word(text, found.start(), found.group())
        if secret:
            yield "a key", secret, found.end() - len(secret)


def is_name_of_secret(name: str) -> bool:
    return not ABOUT_SECRETS.fullmatch(name) and any(
        is_of_secret(found, name) for found in NAME_WORD.finditer(name.lower()) if len(name.lower()) == len(name)
    )


def is_of_secret(found: re.Match[str], text: str) -> bool:
    """Whether a word is in the name of a secret: apiKey and db_pass are, publicKey and compass are not."""
    at = found.start()
    before = text[max(0, at - 30) : at]
    if OF_ANOTHER_KIND.search(before):
        return False
    if found.group() == "key":
        return bool(KEY_OF.search(before))
    return found.group() != "pass" or text[at] == "P" or not before[-1:].isalpha()


def after_names(text: str, lower: str, bare: bool) -> collections.abc.Iterator[tuple[str, str, int]]:
    rules = [
        (kind, before, re.compile(f"(?i){after}")) for kind, before, after, in_code in AFTER_NAME if bare or in_code
    ]
    searched = 0  # names in a long value are not looked at again: `token=token=token=…`
    for name in NAME_WORD.finditer(lower):
        if name.start() < searched or not is_of_secret(name, text):
            continue
        before = text[max(0, name.start() - 60) : name.start()]
        for kind, needed, after in rules:
            found = after.match(text, name.end())
            if found and (not needed or re.search(needed, before)):
                searched = found.end() if found.end() - found.start() > 150 else searched
                secret = assigned(found, before)
                if secret:
                    yield kind, *secret


def assigned(found: re.Match[str], before: str = "") -> tuple[str, int] | None:
    """The value in a match and where it begins, if it is a secret."""
    parts = found.groupdict()
    sign, close = parts.get("sign"), parts.get("close") or ""
    if ABOUT_SECRETS.fullmatch(parts.get("rest") or ""):
        return None
    if (
        re.search(r"arn:\S*$", before)
        or (sign == "(" and GETS.search(before))
        or (sign == "," and not close.strip("])"))
    ):
        return None
    group = next(name for name in ("value", "bare", "literal") if parts.get(name))
    if REFERENCE.search(parts[group]):
        return None
    value = parts[group].rstrip(").,]}\\" if group == "bare" else "\\")
    is_secret = is_literal(value) if group == "literal" else may_be_password(value)
    if (
        not is_secret
        or (group == "bare" and is_code_name(value))
        or (sign == "," and value.isalnum() and len(value) < 10)
    ):
        return None
    return value, found.start(group)


def is_for_everybody(found: re.Match[str]) -> bool:
    """Whether the password in an address is an example: a reference, the user's name, or usual for a local server."""
    user, value, host = found["user"], found["value"], found["host"].lower()
    if REFERENCE.search(value) or value.lower() == user.lower() or len(set(value)) < 3:
        return True
    is_usual = value.lower() in ("password", "pass", "passwd", "pwd", "token")
    return is_usual or (host.startswith(LOCAL_HOSTS) and is_put_in_later(value))


def key_after_word(text: str, start: int, found: str) -> str | None:
    """The key in a long text, if the words before it announce one."""
    if len(found) > 512 or found.isalpha():
        return None
    leading = LEADING_WORDS.match(found)
    lead = leading.group() if leading else ""
    value = found[len(lead) :]
    if len(value) < 10 or value.isalpha():
        return None
    before = text[max(0, start - 90) : start].rpartition("\n")[2] + lead
    words = [word.lower() for word in re.findall("[A-Z]?[a-z]+|[A-Z]+", before[-60:])[-4:]]
    is_announced = any(word.endswith(KEY_WORDS) for word in words) or not SERVICES.isdisjoint(words[-1:])
    if not is_announced or not NO_KEY_WORDS.isdisjoint(words):
        return None
    if ABOUT_WORD.fullmatch(words[-1]) or OTHER_PLACE.search(before) or not is_random(value):
        return None
    is_assigned = re.search(r"[\w'\"\])]\s{0,4}[:=]\s{0,4}['\"`]?$", before)
    return value if len(value) >= 16 or (is_assigned and not is_put_in_later(value)) else None
