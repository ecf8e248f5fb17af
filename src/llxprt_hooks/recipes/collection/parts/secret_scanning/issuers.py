"""What issuers give their keys a form for, from what they document about them."""

from __future__ import annotations

import collections.abc
import re

from llxprt_hooks.recipes.collection.parts.secret_scanning.values import REPEATED

HEX, UPPER, LOWER, LETTERS = "0-9a-f", "0-9A-Z", "0-9a-z", "0-9A-Za-z"
WORD, DOTTED, BASE64 = r"0-9A-Za-z_\-", r"0-9A-Za-z_.\-", "0-9A-Za-z+/="

# What it is, how it begins, the characters that follow, and how many: 20, at least 20 ("20,"), 20 to 50 ("20,50").
# It counts where no letter or digit is right before it and, if its length is limited, no such character right after it.
PREFIXES = [
    # Clouds and their stores
    ("an AWS access key id", "AKIA ASIA ABIA ACCA", UPPER, "16"),
    ("an AWS Bedrock key", "ABSK bedrock-api-key-", BASE64, "40,"),
    ("an Amazon Marketplace token", "amzn.mws. amzn1.oa2-cs.v1.", HEX + "-", "36,"),
    ("a Google API key", "AIza", WORD, "35"),
    ("a Google OAuth secret", "GOCSPX-", WORD, "24,"),
    ("a Google OAuth token", "ya29. 1//0", WORD, "30,"),
    ("an Alibaba Cloud key", "LTAI", LETTERS, "12,30"),
    ("a Tencent Cloud key", "AKID", LETTERS, "32"),
    ("a Yandex Cloud key", "AQVN YCAJE YCM", WORD, "20,"),
    ("a DigitalOcean token", "dop_v1_ doo_v1_ dor_v1_", HEX, "64"),
    ("a Cloudflare origin key", "v1.0-", HEX + "-", "140,"),
    ("a Fly.io token", "fo1_ fm1_ fm2_ fm1r_ fm1a_", WORD + "+/=", "30,"),
    ("a Heroku key", "HRKU-", WORD, "36,"),
    ("a Scaleway key", "SCW", UPPER, "17"),
    ("a Scalingo token", "tk-us-", WORD, "48"),
    ("a Netlify token", "nfp_ nfo_ nfc_", LETTERS, "36,"),
    ("a Vercel token", "vcp_ vci_ vca_ vcr_ vck_ vercel_blob_rw_", LETTERS + "_", "24,"),
    ("a Render key", "rnd_", LETTERS, "24,"),
    ("a Supabase key", "sbp_ sb_secret_", WORD, "22,"),
    ("a Neon key", "napi_ neon_", LOWER, "32,"),
    ("a PlanetScale key", "pscale_tkn_ pscale_pw_ pscale_oauth_ pscale_api_", DOTTED, "30,"),
    ("an Aiven password", "AVNS_", WORD, "15,"),
    ("a MongoDB Atlas secret", "mdb_sa_sk_", WORD, "24,"),
    ("a Databricks token", "dapi", HEX, "32"),
    ("a HashiCorp Vault token", "hvs. hvb. hvr.", WORD, "24,"),
    ("a Pulumi token", "pul-", HEX, "40"),
    ("an Infracost key", "ico-", LETTERS, "32"),
    ("a Doppler token", "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", DOTTED, "40,"),
    ("a 1Password token", "ops_eyJ", BASE64, "60,"),
    ("a Tailscale key", "tskey-", WORD, "16,"),
    ("a Defined Networking key", "dnkey-", LOWER + "_=-", "50,"),
    ("an OpenShift token", "sha256~", WORD, "43"),
    ("an age key", "AGE-SECRET-KEY-1", UPPER, "20,"),
    ("a ClickHouse Cloud key", "4b1d", LETTERS, "38"),
    # Code, packages and builds
    ("a GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", LETTERS, "36,"),
    ("a GitHub token", "github_pat_", LETTERS + "_", "50,"),
    ("a GitLab token", "glpat- gldt- glft- glsoat- glrt- glffct- glwt-", DOTTED, "20,"),
    ("a GitLab token", "glptt-", WORD, "40"),
    ("a GitLab token", "gloas-", WORD, "64"),
    ("a GitLab token", "glagent-", WORD, "50"),
    ("a GitLab token", "glimt-", WORD, "25"),
    ("a GitLab token", "glcbt-", WORD, "20,"),
    ("a GitLab token", "GR1348941", WORD, "20,50"),
    ("a Bitbucket or Atlassian token", "ATATT3 ATBB ATCTT3", WORD + "=", "24,"),
    ("an npm token", "npm_", LETTERS, "36"),
    ("a PyPI token", "pypi-", WORD, "50,"),
    ("a RubyGems key", "rubygems_", HEX, "48"),
    ("a NuGet key", "oy2", LOWER, "43"),
    ("a crates.io token", "cio", LETTERS, "32"),
    ("a Clojars token", "CLOJARS_", LOWER, "60"),
    ("a Docker token", "dckr_pat_ dckr_oat_", WORD, "20,"),
    ("an Artifactory key", "AKCp", LETTERS, "60,"),
    ("an Artifactory token", "cmVmdGtu", LETTERS, "56"),
    ("a CircleCI token", "CCIPAT_ CCIPRJ_", WORD, "40,"),
    ("a Buildkite token", "bkua_ bkaj_ bkct_", LETTERS, "40,"),
    ("an Octopus Deploy key", "API-", UPPER, "26"),
    ("a SonarQube token", "sqp_ squ_ sqa_", HEX, "40"),
    ("a Sourcegraph token", "sgp_ slk_ sgs_ sgd_", LETTERS + "_", "36,"),
    ("a Snyk token", "snyk_uat. snyk_sat.", DOTTED, "40,"),
    ("a Prefect key", "pnu_ pnb_", LETTERS, "36"),
    ("a ReadMe key", "rdme_", LOWER, "60,"),
    ("a Postman key", "PMAK- PMAT-", "0-9A-Za-z-", "26,"),
    # Models
    ("an Anthropic key", "sk-ant-oat01- sk-ant-sid01- sk-ant-ort01-", WORD, "20,"),
    ("an OpenAI key", "sk-proj- sk-svcacct- sk-admin- sk-None-", WORD, "20,"),
    ("an OpenRouter key", "sk-or-", WORD, "32,"),
    ("an OpenAI key", "sk-", LETTERS, "32,"),
    ("a Groq key", "gsk_", LETTERS, "32,"),
    ("a Perplexity key", "pplx-", LETTERS, "32,"),
    ("an xAI key", "xai-", LETTERS, "60,"),
    ("a Hugging Face token", "hf_ api_org_", LETTERS, "34,"),
    ("an NVIDIA key", "nvapi-", WORD, "40,"),
    ("a Replicate token", "r8_", LETTERS, "37,"),
    ("a Fireworks key", "fw_", LETTERS, "22,"),
    ("a Cerebras key", "csk-", LOWER, "30,"),
    ("a Together key", "tgp_v1_", WORD, "40,"),
    ("a LangSmith key", "lsv2_pt_ lsv2_sk_", HEX + "_", "32,"),
    ("a Langfuse key", "sk-lf-", HEX + "-", "36"),
    ("a Pinecone key", "pcsk_", LETTERS + "_", "40,"),
    ("a Tavily key", "tvly-", WORD, "30,"),
    ("a Jina key", "jina_", WORD, "40,"),
    ("a Voyage key", "pa-", WORD, "43"),
    ("an ElevenLabs key", "sk_", HEX, "48"),
    ("a LlamaCloud key", "llx-", WORD, "40,"),
    # Money and goods
    ("a Stripe key", "sk_live_ rk_live_ sk_test_ rk_test_ sk_prod_ rk_prod_", LETTERS, "16,"),
    ("a webhook secret", "whsec_", BASE64, "24,"),
    ("a Square token", "sq0atp- sq0csp-", WORD, "22,"),
    ("a Square token", "EAAA", WORD, "60"),
    ("a Facebook token", "EAAM EAAC EAAB EAAE EAAG EAAD", LETTERS, "80,"),
    ("a PayPal token", "access_token$production$ access_token$sandbox$", LOWER + "$", "16,"),
    ("a Shopify token", "shpat_ shpca_ shppa_ shpss_", "0-9a-fA-F", "32"),
    ("a Plaid token", "access-sandbox- access-production- access-development-", HEX + "-", "36"),
    ("a Flutterwave key", "FLWSECK-", "0-9A-Za-z-", "32,"),
    ("a Flutterwave key", "FLWSECK_TEST-", LETTERS, "12,"),
    ("a GoCardless token", "live_", WORD, "40"),
    ("a Razorpay key", "rzp_live_ rzp_test_", LETTERS, "14,"),
    ("a Paddle key", "pdl_live_apikey_ pdl_sdbx_apikey_", LETTERS + "_", "40,"),
    ("a Lob key", "live_ test_", HEX, "35"),
    ("an EasyPost key", "EZAK EZTK", LETTERS, "54"),
    ("a Duffel token", "duffel_live_ duffel_test_", WORD + "=", "43"),
    ("a Shippo token", "shippo_live_ shippo_test_", HEX, "40"),
    ("a Courier key", "pk_prod_ pk_test_", UPPER, "28"),
    ("a Paystack key", "sk_live_ sk_test_", HEX, "40"),
    ("a key of a payment service", "ak_live_ ak_test_", LETTERS, "30,"),
    # Mail, chat, phones and maps
    ("a Slack token", "xapp- xoxd- xoxe-", "0-9A-Za-z%-", "20,"),
    ("a Mailgun key", "key- pubkey-", HEX, "32"),
    ("a Brevo key", "xkeysib- xsmtpsib-", LOWER + "-", "40,"),
    ("a Resend key", "re_", LETTERS + "_", "30,"),
    ("a Twilio key", "SK", HEX, "32"),
    ("a Telnyx key", "KEY0", LETTERS + "_", "50,"),
    ("a Mapbox token", "pk.eyJ sk.eyJ tk.eyJ", DOTTED, "40,"),
    ("a Dropbox token", "sl.u. sl.B sl.A", WORD, "60,"),
    ("an Intercom token", "dG9rO", BASE64, "50,"),
    ("a HubSpot token", "pat-na1- pat-na2- pat-na3- pat-eu1-", HEX + "-", "36"),
    ("a Klaviyo key", "pk_", HEX, "34"),
    ("a Voiceflow key", "VF.DM. VF.WS.", DOTTED, "30,"),
    ("a Cal.com key", "cal_live_ cal_test_", HEX, "32"),
    ("a Typeform token", "tfp_", DOTTED, "40,"),
    ("a Teamwork token", "tkn.v1_", BASE64, "60,"),
    ("a PubNub key", "sec-c-", WORD, "36,"),
    ("a PubNub key", "pub-c- sub-c-", HEX + "-", "36"),
    # Monitoring and switches
    ("a New Relic key", "NRAK- NRII- NRIQ- NRRA- NRSP- NRJS-", WORD, "19,"),
    ("a Sentry token", "sntrys_ sntryu_", DOTTED + "+/=", "40,"),
    ("a Grafana token", "glc_ glsa_ eyJrIjoi", LETTERS + "_=+/", "32,"),
    ("a Dynatrace token", "dt0c01. dt0s01. dt0s02. dt0s08. dt0s16.", DOTTED, "60,"),
    ("a PostHog key", "phx_ phs_ pha_", WORD, "32,"),
    ("a Honeycomb key", "hcaik_ hcbik_ hcamk_", LETTERS, "30,"),
    ("an Axiom token", "xaat- xapt-", HEX + "-", "36"),
    ("a Logfire token", "pylf_", LETTERS + "_", "40,"),
    ("a Rootly key", "rootly_", HEX, "64"),
    ("a LaunchDarkly key", "api- sdk-", HEX + "-", "36"),
    ("a Statsig key", "secret-", LETTERS, "40,"),
    ("a ConfigCat key", "configcat-sdk-1/", WORD + "/", "40,"),
    # Work
    ("a Linear key", "lin_api_ lin_oauth_", LETTERS, "32,"),
    ("a Notion token", "ntn_ secret_", LETTERS, "43,"),
    ("a Figma token", "figd_ figdr_", WORD, "30,"),
    ("a Contentful token", "CFPAT-", WORD, "43"),
    ("an Adafruit key", "aio_", LETTERS, "28"),
    ("a Beamer key", "b_", WORD + "=", "44"),
    ("a Frame.io token", "fio-u-", WORD, "64"),
    ("a SettleMint key", "sm_pat_ sm_aat_ sm_sat_", LETTERS, "16"),
    ("a Lichess token", "lip_", LETTERS, "16,"),
    ("a Cesium ion token", "ion_", LETTERS, "42"),
    ("a 42 token", "s-s4t2ud- s-s4t2af-", HEX, "64"),
    ("a ScrapFly key", "scp-live- scp-test-", HEX, "32"),
]  # fmt: skip

# What it is, texts that such a key has one of, and the pattern. The texts make the search fast: a pattern is compiled
# only if one of them is found.
FORMS = [
    ("a private key", "-----BEGIN", r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?-----"),
    ("a private key", "PuTTY-User-Key-File-", r"PuTTY-User-Key-File-\d"),
    ("a WireGuard key", "PrivateKey", r"\bPrivateKey\s{0,4}=\s{0,4}[0-9A-Za-z+/]{43}="),
    ("an Azure key", "Key=", r"\b(?:Account|SharedAccess)Key=[0-9A-Za-z+/]{40,90}={0,2}"),
    ("an Azure signature", "sig=", r"[?&;]sig=[0-9A-Za-z%+/]{40,}"),
    ("an Azure key", "Q~", r"(?<![\w~.-])[\w~.]{3}\dQ~[\w~.-]{31,34}(?![\w~.-])"),
    ("an Anthropic key", "sk-ant-", r"\bsk-ant-(?:api03|admin01)-[\w-]{93}AA(?![\w-])"),
    ("an Azure DevOps token", "AZDO", r"\b[0-9A-Za-z]{76}AZDO[0-9A-Za-z]{4}\b"),
    ("an Azure storage key", "+ASt ACDb", r"\b[0-9A-Za-z+/]{33,76}(?:\+ASt|ACDb)[0-9A-Za-z+/]{5,8}={1,2}"),
    ("an Azure service key", "AzCa AzFu AzSe", r"\b[0-9A-Za-z+/]{33,44}Az(?:Ca|Fu|Se)[0-9A-Za-z+/]{5,8}={0,2}"),
    ("a Fly.io token", "FlyV1", r"\bFlyV1 \S{20,}"),
    ("a Terraform Cloud token", ".atlasv1.", r"\b[0-9A-Za-z]{14}\.atlasv1\.[\w=-]{60,70}"),
    ("a HashiCorp Vault token", "s.", r"(?<![\w.])s\.(?=[A-Za-z]{0,23}\d)[0-9A-Za-z]{24}(?![\w.(])"),
    ("a Harness token", "pat. sat.", r"\b[ps]at\.[\w-]{22}\.[0-9a-f]{24}\.[0-9A-Za-z]{20}\b"),
    ("a 1Password key", "A3-", r"\bA3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}\b"),
    ("a Slack token", "xox", r"\bxox[abcoprs]-(?:\d{1,2}-)?(?:\d{9,14}-){1,3}(?=\d{0,40}[A-Za-z])[0-9A-Za-z]{10,}"),
    ("a Slack token", "xox", r"\bxox[ar]-(?:\d-)?(?=[A-Za-z]{0,40}\d)[0-9A-Za-z]{16,48}\b"),
    ("a chat webhook", "hooks.slack.com", r"hooks\.slack\.com/(?:services|workflows|triggers)/[0-9A-Za-z/_+-]{20,}"),
    ("a chat webhook", "/api/webhooks/", r"discord(?:app)?\.com/api/webhooks/[0-9]{5,25}/[\w-]{30,}"),
    ("a chat webhook", ".office.com/webhook", r"[\w.-]{1,60}\.office\.com/webhook[\w@/-]{60,}"),
    ("a webhook", "hooks.zapier.com/", r"hooks\.zapier\.com/hooks/catch/[\w/]{8,}"),
    ("a chat webhook", "chat.googleapis.com", r"chat\.googleapis\.com/v1/spaces/[\w-]{5,40}/messages\?key=\S{20,}"),
    ("a Discord token", ".", r"(?<![\w.-])[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,38}(?![\w.-])"),
    ("a Telegram token", ":AA", r"(?<![0-9A-Za-z])(?:(?<=/)bot)?\d{8,10}:AA[\w-]{32,33}(?![\w-])"),
    ("a Telegram address", "tgram://", r"tgram://\d{5,16}:[\w-]{20,}"),
    ("a SendGrid key", "SG.", r"\bSG\.[\w-]{16,40}\.[\w-]{16,}"),
    ("a Mailchimp key", "-us", r"\b[0-9a-f]{32}-us\d{1,2}\b"),
    ("a New Relic license", "NRAL", r"\b[0-9a-z]{32,40}NRAL\b"),
    ("an Airtable token", "pat", r"\bpat[0-9A-Za-z]{14}\.[0-9a-f]{64}"),
    ("an Asana token", "/", r"\b[0-2]/(?:\d{14,17}/)?\d{14,17}:[0-9a-f]{32}\b"),
    ("a MaxMind key", "_mmk", r"\b[0-9A-Za-z]{6}_[0-9A-Za-z]{29}_mmk\b"),
    ("a Facebook app token", "| %7C", r"\b\d{15,16}(?:\||%7C)[\w-]{26,28}(?![\w-])"),
    ("a Twitch key", "live_", r"\blive_\d{6,12}_[0-9A-Za-z]{30}\b"),
    ("an Okta token", "SSWS", r"\bSSWS\s+[\w-]{38,44}"),
    ("a Ticket Tailor key", "sk_", r"\bsk_\d{4,6}_\d{4,8}_[0-9a-f]{32}"),
    ("a JSON Web Token", "eyJ", r"(?<![\w-])eyJ(?=[\w-]{0,999}(?:hbGci|YWxnI|FsZyI))[\w-]{10,999}\.eyJ[\w-]{10,}"),
    ("a one-time password secret", "otpauth://", r"(?i)otpauth://[^\s'\"]{1,200}[?&]secret=[a-z2-7%=]{8,}"),
    ("a password hash", "$2", r"\$2[abxy]?\$\d\d\$[\w./]{50,}"),
    ("a password hash", "$1$ $5$ $6$ $8$ $9$ $y$ $apr1$", r"\$(?:[15689y]|apr1)\$[\w./=]{1,80}\$[\w./$]{20,}"),
    ("a password hash", "$argon2 $krb5", r"\$(?:argon2id?|argon2d|krb5\w{1,8})\$[\w./,=+$*@:-]{40,}"),
    ("a Cloudinary address", "cloudinary://", r"cloudinary://\d{10,20}:[\w-]{20,40}@"),
]  # fmt: skip


def long_texts(text: str) -> list[str]:
    """What may have a key in it: less to search through than the whole text."""
    return re.findall(r"[^\s'\"`]{16,}", text)


def issued(text: str) -> collections.abc.Iterator[tuple[str, str, int]]:
    """The keys with the form of an issuer in a text: what it is, the key, and where it begins."""
    candidates = "\n".join(long_texts(text))
    for kind, prefixes, characters, count in PREFIXES:
        for prefix in prefixes.split():
            if prefix in candidates:
                end = "" if count.endswith(",") else f"(?![{characters}])"
                pattern = re.compile(rf"(?<![0-9A-Za-z]){re.escape(prefix)}([{characters}]{{{count}}}){end}")
                yield from ((kind, *each) for each in beginning(text, prefix, pattern))
    for kind, parts, expression in FORMS:
        if any(part in text for part in parts.split()):
            for found in re.finditer(expression, text):
                if not REPEATED.search(found.group()):
                    yield kind, found.group(), found.start()


def beginning(text: str, prefix: str, pattern: re.Pattern[str]) -> collections.abc.Iterator[tuple[str, int]]:
    """What matches and begins with a prefix."""
    at = text.find(prefix)
    while at >= 0:
        found = pattern.match(text, at)
        if found and not is_example(found.group(1)):
            yield found.group(), at
        at = text.find(prefix, found.end() if found else at + 1)


def is_example(characters: str) -> bool:
    """Whether what follows a prefix is not random: `xxxx…`, `requiredCharacteristicTypes…`."""
    few = len(set(characters)) <= 5 or bool(REPEATED.search(characters))
    return few or (len(characters) >= 30 and not re.search(r"\d", characters))
