"""Define all metrics. Never use ids as label values."""

from __future__ import annotations

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
REGISTRY = CollectorRegistry()
ProcessCollector(registry=REGISTRY)
PlatformCollector(registry=REGISTRY)
GCCollector(registry=REGISTRY)

REQUEST_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of the request time buckets, in seconds."""
REQUESTS = Counter("agent_memory_http_requests", "Answered requests.", ("method", "route", "status"), registry=REGISTRY)
REQUEST_SECONDS = Histogram(
    "agent_memory_http_request_seconds",
    "Time from a request's headers to the end of its response.",
    ("method", "route"),
    buckets=REQUEST_BUCKETS,
    registry=REGISTRY,
)
REQUESTS_IN_FLIGHT = Gauge("agent_memory_http_in_flight", "Requests that the process is handling.", registry=REGISTRY)
REQUESTS_REFUSED = Counter("agent_memory_http_refused", "Requests refused because the process was handling too many.", registry=REGISTRY)
LIMITED = Counter(
    "agent_memory_limited",
    "Requests refused because of a tenant's limit.",
    ("limit",),
    registry=REGISTRY,
)
OUTBOX_PENDING = Gauge("agent_memory_outbox_pending", "Background jobs that are waiting.", ("kind",), registry=REGISTRY)
OUTBOX_DEAD = Gauge("agent_memory_outbox_dead", "Dead letters: background jobs that failed too often.", ("kind",), registry=REGISTRY)
OUTBOX_OLDEST_SECONDS = Gauge("agent_memory_outbox_oldest_seconds", "Age of the oldest due job, in seconds.", ("kind",), registry=REGISTRY)

MODEL_TOKENS = Counter("agent_memory_model_tokens", "Tokens that the process used for chat model calls.", registry=REGISTRY)


def observe_request(method: str, route: str, status: int, seconds: float) -> None:
    REQUESTS.labels(method, route, str(status)).inc()
    REQUEST_SECONDS.labels(method, route).observe(seconds)


def render() -> bytes:
    return generate_latest(REGISTRY)
