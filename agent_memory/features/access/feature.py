"""Declare the access feature: credentials, API keys, limits and budgets."""

from __future__ import annotations

from agent_memory.features.access.browser_sessions import BrowserSessions
from agent_memory.features.access.context_limits import ContextLimits
from agent_memory.features.access.credentials import Authenticator, open_oauth
from agent_memory.features.access.limits import LimitStore, RequestLimit
from agent_memory.features.access.tenant_models import TenantModels
from agent_memory.features.access.token_store import TokenStore
from agent_memory.features.access.tokens import TokenGate, TokenService
from agent_memory.foundation.core.feature import Feature, KeySpace, Services
from agent_memory.foundation.foundation import Foundation
from agent_memory.foundation.storage.erasures import ErasureGuard


def erasures_of(bucket: Foundation) -> ErasureGuard:
    return ErasureGuard(bucket.client, bucket.keys)


def open_access(foundation: Foundation, services: Services) -> None:
    settings, client, keys = foundation.settings, foundation.client, foundation.keys
    limits = LimitStore(client, keys)
    # The first bucket has the API keys of all tenants.
    home = foundation.buckets[0]
    tokens = TokenStore(home.client, home.keys, lambda tenant: erasures_of(foundation.bucket(tenant)))
    token_gate = TokenGate(settings.auth, tokens)
    home.watch.on_renewal(token_gate.renew)
    gate, provider = open_oauth(settings, token_gate) if settings.auth.takes_jwts else (token_gate, None)
    services.add(
        Authenticator(gate),
        tokens,
        token_gate,
        TokenService(tokens, token_gate),
        BrowserSessions(client, keys, token_gate if settings.auth.takes_keys else None, provider),
        RequestLimit(settings.limits, limits),
        TenantModels(settings.limits, limits, foundation.chat, foundation.embedder, paid=settings.models.use_openai_embeddings),
        ContextLimits(client, keys),
    )


ACCESS = Feature(
    name="access",
    open=open_access,
    routes=("agent_memory.features.access.routes:router",),
    keys=(
        KeySpace(
            "tok:<digest>", "hash", "an API key's rights, by the keyed digest of its secret", "until revoked, or 30 days after it expires"
        ),
        KeySpace("toks", "hash", "the digests of the API keys, by id", "until revoked"),
        KeySpace("tok-secret", "string", "the HMAC key for the digests, unless AUTH_SECRET is set", "forever", personal=False),
        KeySpace("browser:<digest>", "string", "the API key's digest or the claims of a browser login; empty: a used login", "12 hours"),
        KeySpace("rate:<tenant>", "hash", "a tenant's remaining requests", "until fully replenished", personal=False),
        KeySpace("spent:<tenant>", "hash", "the model tokens that a tenant used in a day", "2 days", personal=False),
        KeySpace(
            "ctx:<model>",
            "string",
            "learned from refusals: a model's token limit, or that it rejects images",
            "an hour; a day",
            personal=False,
        ),
    ),
)
