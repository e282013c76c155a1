# The image of server, controllers and migrations: docker build -t REGISTRY/porch:VERSION .
# What pip downloads comes from where pip is configured to look; the pinned hashes say what it must be.
ARG PYTHON=3.11

FROM python:${PYTHON}-slim AS build
WORKDIR /src
RUN python -m venv /opt/porch
COPY requirements/ requirements/
# The libraries first: they change less often than the sources. The exporter of traces is pinned among the developers' libraries.
RUN /opt/porch/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes \
      --requirement requirements/build.txt --requirement requirements/run.txt \
 && /opt/porch/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes \
      --constraint requirements/dev.txt opentelemetry-sdk opentelemetry-exporter-otlp-proto-http
COPY pyproject.toml README.md LICENSE ./
COPY apiserver/ apiserver/
COPY controllers/ controllers/
COPY krm/ krm/
COPY migrations/ migrations/
COPY storage/ storage/
# No file can be written later, so the sources are compiled now.
RUN /opt/porch/bin/pip install --no-cache-dir --disable-pip-version-check --no-deps --no-build-isolation . \
 && /opt/porch/bin/pip uninstall --yes --quiet pip setuptools \
 && python -m compileall -q /opt/porch

FROM python:${PYTHON}-slim
LABEL org.opencontainers.image.title="porch" \
      org.opencontainers.image.description="Package orchestration over Git, with the Kubernetes API of porch.kpt.dev" \
      org.opencontainers.image.licenses="Apache-2.0"
# The user has no home, no shell and no password; any other without rights will do, too.
RUN useradd --system --uid 10001 --user-group --no-create-home --home-dir /tmp --shell /usr/sbin/nologin porch \
 && install --directory --owner=10001 --group=10001 --mode=0770 /var/lib/porch
COPY --from=build /opt/porch /opt/porch
ENV PATH=/opt/porch/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    PORCH_DATA=/var/lib/porch
# By number: Kubernetes cannot tell whether a name is root.
USER 10001:10001
WORKDIR /var/lib/porch
VOLUME /var/lib/porch
EXPOSE 4443 9464 8080
ENTRYPOINT ["porch"]
CMD ["serve"]
