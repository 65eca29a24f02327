"""Rules that recognise keys, tokens, passwords, e-mail addresses and telephone numbers in text.

Each format has a name, literal anchors, and a pattern that is only tried if the text contains an anchor, so ordinary
text costs a few substring searches. An anchor that names no secret belongs to a format of at least 15 characters
without a space, which is rare in ordinary text. Every pattern is bounded or runs once over the text, so time is linear.
A named group ``secret`` marks the part to redact if that is not the whole match.
"""

from __future__ import annotations

import re
from functools import cached_property

from rlm_mem.record import FrozenRecord
from rlm_mem.text.patterns import late, word_set

KEY = "key"
PII = "pii"


class SecretRule(FrozenRecord, frozen=True, dict=True):
    """One recognisable format; ``title`` describes it in messages.

    The pattern is compiled when an anchor is first found, since most processes find no secret.
    """

    name: str
    title: str
    anchors: tuple[str, ...]
    expression: str
    flags: int = 0
    kind: str = KEY

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The compiled pattern."""
        return re.compile(self.expression, self.flags)


_BEFORE = r"(?<![A-Za-z0-9])"
_AFTER = r"(?![A-Za-z0-9])"
_DIGIT = r"(?=[A-Za-z_-]{0,100}+[0-9])"  # words joined by hyphens are not a key; bounded, so linear


def _rule(name: str, title: str, anchors: str, pattern: str, flags: int = 0) -> SecretRule:
    return SecretRule(name, title, tuple(anchors.split()), pattern, flags)


def _token(name: str, title: str, anchors: str, body: str) -> SecretRule:
    """A rule for a format that is not inside a longer word."""
    return _rule(name, title, anchors, _BEFORE + body + _AFTER)


# Quotation marks around names and values, also escaped ones in nested JSON, and Markdown emphasis.
_QUOTE = r"(?:\\{0,8}[\"'`“”„‘’‚«»]|[*_]{1,3})?"
_ASSIGNS = _QUOTE + r"[ \t]{0,8}(?:=>|:?=|[:：＝])" + r"[*_]{0,3}[ \t\u3000]{0,8}" + _QUOTE

# Anchors: the name of a secret, then the separator before its value.
_NAMED = tuple(
    name + behind
    for name in sorted(
        word_set("key key_id keyid token secret password passwd passwort pwd credential credentials")
    )
    for behind in (*":=：＝\"'`”’»*_\\\t", " :", " =", " ：", " ＝")
)

KEY_RULES: tuple[SecretRule, ...] = (
    # Language models and agent services.
    _rule(
        "model-provider-key",
        "a key of OpenAI, Anthropic, OpenRouter, Stripe or a like provider",
        "sk- sk_ rk- rk_",
        _BEFORE + r"[sr]k[-_]" + _DIGIT + r"[A-Za-z0-9_-]{16,}",
    ),
    _rule(
        "model-host-key",
        "a key of a model host (Groq, xAI, Perplexity, Hugging Face, Replicate, NVIDIA, Fireworks, Together)",
        "gsk_ gsk- xai- xai_ pplx- pplx_ hf_ hf- r8_ r8- nvapi- nvapi_ fw_ fw- csk- csk_ tgp_v1",
        _BEFORE + r"(?:gsk|xai|pplx|hf|r8|nvapi|fw|csk|tgp_v1)[-_]" + _DIGIT + r"[A-Za-z0-9_-]{20,}",
    ),
    _token("langsmith-key", "a LangSmith key", "lsv2_", r"lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}"),
    _token("pinecone-key", "a Pinecone key", "pcsk_", r"pcsk_[A-Za-z0-9_]{40,90}"),
    _token("tavily-key", "a Tavily key", "tvly-", r"tvly-(?:dev-|prod-)?[A-Za-z0-9]{24,60}"),
    _token("firecrawl-key", "a Firecrawl key", "fc-", r"fc-[a-f0-9]{32}"),
    # Clouds.
    _token("aws-access-key", "an AWS access key", "AKIA ASIA", r"(?:AKIA|ASIA)[A-Z0-9]{16}"),
    _rule("google-api-key", "a Google API key", "AIza", _BEFORE + r"AIza[A-Za-z0-9_-]{30,}"),
    _rule("google-oauth-token", "a Google OAuth token", "ya29.", _BEFORE + r"ya29\.[A-Za-z0-9_-]{20,}"),
    _rule("google-client-secret", "a Google client secret", "GOCSPX-", r"GOCSPX-[A-Za-z0-9_-]{28}"),
    _rule(
        "azure-storage-key",
        "an Azure storage key",
        "AccountKey=",
        r"AccountKey=(?P<secret>[A-Za-z0-9+/]{80,}={0,2})",
    ),
    _rule(
        "azure-client-secret",
        "an Azure client secret",
        "Q~",
        r"(?<![\w~.-])[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34}(?![\w~-])",
    ),
    _token("alibaba-access-key", "an Alibaba Cloud access key", "LTAI", r"LTAI[A-Za-z0-9]{16,24}"),
    _token("tencent-secret-id", "a Tencent Cloud secret id", "AKID", r"AKID[A-Za-z0-9]{32}"),
    _token("digitalocean-token", "a DigitalOcean token", "_v1_", r"do[oprt]_v1_[a-f0-9]{64}"),
    _token("heroku-key", "a Heroku key", "HRKU-", r"HRKU-[A-Za-z0-9_-]{36,70}"),
    _rule(
        "fly-token",
        "a Fly.io token",
        "fm1 fm2 fo1_",
        _BEFORE + r"(?:fm[12][ar]?_[A-Za-z0-9+/=,_-]{60,}|fo1_[\w-]{43})",
    ),
    _token("netlify-token", "a Netlify token", "nfp_", r"nfp_[A-Za-z0-9]{36,50}"),
    _token("supabase-token", "a Supabase token", "sbp_", r"sbp_[a-f0-9]{40}"),
    _rule(
        "planetscale-token",
        "a PlanetScale token or password",
        "pscale_",
        r"pscale_(?:tkn|pw|oauth)_[\w=.-]{32,80}",
    ),
    _token("databricks-token", "a Databricks token", "dapi", r"dapi[a-f0-9]{32}(?:-\d)?"),
    _rule("cloudflare-origin-key", "a Cloudflare origin key", "v1.0-", r"v1\.0-[a-f0-9]{24}-[a-f0-9]{146}"),
    # Code hosting, package registries and delivery.
    _rule(
        "github-token",
        "a GitHub token",
        "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
        _BEFORE + r"(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,})",
    ),
    _rule(
        "gitlab-token",
        "a GitLab token",
        "glpat- gldt- glrt- glcbt- glptt- glft- glsoat- glimt- glagent-",
        _BEFORE + r"gl(?:pat|dt|rt|cbt|ptt|ft|soat|imt|agent)-[A-Za-z0-9_-]{20,}",
    ),
    _rule(
        "atlassian-token",
        "an Atlassian token",
        "ATATT3 ATBB ATCTT3",
        _BEFORE + r"(?:ATATT3|ATCTT3)[A-Za-z0-9_=-]{60,}|" + _BEFORE + r"ATBB[A-Za-z0-9]{32}",
    ),
    _token("npm-token", "an npm token", "npm_", r"npm_[A-Za-z0-9]{36}"),
    _rule("pypi-token", "a PyPI token", "pypi-AgE", r"pypi-AgE[A-Za-z0-9_-]{50,}"),
    _token("rubygems-key", "a RubyGems key", "rubygems_", r"rubygems_[a-f0-9]{48}"),
    _token("crates-token", "a crates.io token", "cio", r"cio[A-Za-z0-9]{32}"),
    _rule("docker-token", "a Docker Hub token", "dckr_", r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{27,40}"),
    _rule("vault-token", "a Vault token", "hvs. hvb.", _BEFORE + r"hv[sb]\.[A-Za-z0-9_-]{24,}"),
    _rule(
        "terraform-token", "a Terraform Cloud token", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{60,}"
    ),
    _token("pulumi-token", "a Pulumi token", "pul-", r"pul-[a-f0-9]{40}"),
    _rule(
        "doppler-token",
        "a Doppler token",
        "dp.",
        _BEFORE + r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9._-]{40,}",
    ),
    _rule("onepassword-token", "a 1Password service token", "ops_eyJ", r"ops_eyJ[A-Za-z0-9_=-]{200,}"),
    _token("age-key", "an age secret key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    # Monitoring and collaboration.
    _rule(
        "grafana-token",
        "a Grafana token",
        "glc_ glsa_",
        _BEFORE + r"(?:glc_[A-Za-z0-9+/=]{32,}|glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8})",
    ),
    _token("newrelic-key", "a New Relic key", "NRAK-", r"NRAK-[A-Z0-9]{27}"),
    _rule("sentry-token", "a Sentry token", "sntry", r"sntry(?:s_eyJ[A-Za-z0-9+/=_-]{40,}|u_[a-f0-9]{64})"),
    _token("postman-key", "a Postman key", "PMAK-", r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}"),
    _rule(
        "slack-token",
        "a Slack token",
        "xox xapp-",
        _BEFORE + r"(?:xox[abeposr]-[A-Za-z0-9-]{10,}|xapp-\d-[A-Za-z0-9-]{30,})",
    ),
    _rule(
        "slack-webhook",
        "a Slack webhook",
        "hooks.slack.com",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9/_-]{20,})",
    ),
    _rule(
        "discord-webhook",
        "a Discord webhook",
        "/api/webhooks/",
        r"discord(?:app)?\.com/api/webhooks/\d{17,20}/(?P<secret>[\w-]{60,80})",
    ),
    _rule(
        "telegram-token",
        "a Telegram bot token",
        ":AA",
        _BEFORE + r"\d{8,10}:AA[A-Za-z0-9_-]{32,34}(?![A-Za-z0-9_-])",
    ),
    _token("linear-key", "a Linear key", "lin_", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,64}"),
    _token(
        "notion-token", "a Notion token", "ntn_ secret_", r"(?:ntn_[A-Za-z0-9]{40,60}|secret_[A-Za-z0-9]{43})"
    ),
    _token("airtable-token", "an Airtable token", "pat", r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}"),
    _rule("figma-token", "a Figma token", "figd_", r"figd_[\w-]{40,60}"),
    _rule("contentful-token", "a Contentful token", "CFPAT-", r"CFPAT-[\w-]{43}"),
    _rule(
        "hubspot-token",
        "a HubSpot token",
        "pat-",
        _BEFORE + r"pat-(?:na|eu)\d-[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}",
    ),
    _rule("dropbox-token", "a Dropbox token", "sl.", _BEFORE + r"sl\.[\w-]{130,}"),
    _token("facebook-token", "a Facebook token", "EAA", r"EAA[A-Za-z0-9]{80,}"),
    # Payments, mail, messages.
    _token("stripe-webhook-secret", "a Stripe webhook secret", "whsec_", r"whsec_[A-Za-z0-9]{24,64}"),
    _rule("square-token", "a Square token", "sq0", _BEFORE + r"sq0(?:atp|csp|idp)-[\w-]{22,50}"),
    _token("shopify-token", "a Shopify token", "shp", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
    _token("shippo-token", "a Shippo token", "shippo_", r"shippo_(?:live|test)_[a-f0-9]{40}"),
    _token("easypost-key", "an EasyPost key", "EZAK EZTK", r"EZ[AT]K[A-Za-z0-9]{54}"),
    _rule("sendgrid-key", "a SendGrid key", "SG.", _BEFORE + r"SG\.[\w-]{16,64}\.[\w-]{16,64}"),
    _token("mailgun-key", "a Mailgun key", "key-", r"key-[0-9a-f]{32}"),
    _token("mailchimp-key", "a Mailchimp key", "-us", r"[0-9a-f]{32}-us\d{1,2}"),
    _token("twilio-key", "a Twilio key", "SK", r"SK[0-9a-f]{32}"),
    _token("brevo-key", "a Brevo key", "xkeysib-", r"xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}"),
    # Formats shared by many services.
    _rule(
        "json-web-token",
        "a JSON web token",
        "eyJ",
        r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
    ),
    _rule(
        "authorization-header",
        "the value of an authorization header",
        "bearer basic",
        r"\b(?:Bearer|Basic)[ \t]+(?=[A-Za-z0-9._~+/-]{0,400}[0-9=])(?P<secret>[A-Za-z0-9._~+/-]{16,}={0,2})",
        re.IGNORECASE,
    ),
    _rule(
        "key-header",
        "the value of a key header",
        "api-key",
        r"\b(?:x-api-key|api-key|x-goog-api-key)" + _ASSIGNS + r"(?P<secret>[^\s\"',;\[\]\\]{8,})",
        re.IGNORECASE,
    ),
    _rule(
        "password-in-address",
        "a password in an address",
        "://",
        r"[a-z][a-z0-9+.-]{0,30}://(?P<secret>[^\s/@:\[]{0,256}:[^\s/@]{1,256})@",
    ),
    # A name of a secret, then : or =, then a long run of letters and digits that is not a word.
    SecretRule(
        "assigned-secret",
        "what is assigned to a password, key or token",
        _NAMED,
        (
            r"(?:api_?key|access_?key(?:_?id)?|secret_?key|private_?key|auth_?key|auth_?token|access_?token|refresh_?token"
            r"|client_?secret|secret|token|password|passwd|passwort|pwd|credentials?)"
            + _ASSIGNS
            + r"(?=[^\s\"',;`\[\]]{0,100}[0-9])(?=[^\s\"',;`\[\]]{0,100}[A-Za-z])"
            r"(?P<secret>[A-Za-z0-9+/_.~!@#$%^&*=-]{10,200})"
        ),
        re.IGNORECASE,
    ),
)
"""Keys, tokens and passwords."""

PRIVATE_KEY_EDGE = late(r"-----(BEGIN|END) [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
"""The first or last line of a private key in PEM or PGP armour."""
PRIVATE_KEY_LINES = late(r"\s*+(?:[A-Za-z0-9+/=]{20,}+\s*+)++")
"""The lines between them, from the first."""

PII_RULES: tuple[SecretRule, ...] = (
    SecretRule(
        "e-mail-address",
        "an e-mail address",
        ("@",),
        (
            r"(?<![A-Za-z0-9._%+/@-])(?!git@)[A-Za-z0-9_%+-][A-Za-z0-9._%+-]{0,63}@"
            r"(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9-])"
        ),
        kind=PII,
    ),
    SecretRule(
        "telephone-number",
        "a telephone number",
        tuple("0123456789"),
        (
            # Begins with a set of characters, so that the search skips ahead at the speed of C.
            r"[+(1-9](?<![\w+.-].)(?:"
            # Such as +44 20 7946 0958: a country code, then 7 to 12 digits in groups.
            r"(?<=\+)[1-9]\d{0,2}[ .-]?(?:\(0?\d{1,4}\)[ .-]?)?\d{1,4}(?:[ .-]?\d{2,4}){2,4}"
            # (555) 123-4567, 555-123-4567, 1-555-123-4567
            r"|(?<=\()[2-9]\d{2}\) ?[2-9]\d{2}[ .-]\d{4}"
            r"|(?<=1)[ .-](?:\([2-9]\d{2}\) ?|[2-9]\d{2}[.-])[2-9]\d{2}[ .-]\d{4}"
            r"|(?<=[2-9])\d{2}[.-][2-9]\d{2}[ .-]\d{4}"
            r")(?![\w-])"
        ),
        kind=PII,
    ),
)
"""Personal contact data."""
