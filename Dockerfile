# One image for web, worker and beat. Build: docker build -t panelbench .
# PYTHON_IMAGE may name an image by its digest: docs/operations.md, "Images by digest".
ARG PYTHON_IMAGE=python:3.12-slim
FROM ${PYTHON_IMAGE} AS build
WORKDIR /build
RUN python -m venv /opt/panelbench && pip install --no-cache-dir uv
COPY requirements/base.txt requirements/base.txt
RUN uv pip install --python /opt/panelbench/bin/python --require-hashes --compile-bytecode -r requirements/base.txt
COPY pyproject.toml README.md LICENSE ./
COPY platform platform
COPY annotation annotation
COPY judging judging
COPY analytics analytics
COPY templates templates
COPY static static
COPY locale locale
RUN uv pip install --python /opt/panelbench/bin/python --no-deps --no-build-isolation . \
 && STATIC_ROOT=/opt/static PANELBENCH_DATA_DIR=/tmp/build DEBUG=on \
    /opt/panelbench/bin/panelbench collectstatic --noinput \
 && chmod -R a+rX /opt/static

FROM ${PYTHON_IMAGE}
# Pango and fonts: PDF of reports (docs/decisions/0032). Names in Chinese, Japanese or Korean need fonts-noto-cjk, too.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0 fonts-noto-core \
 && rm -rf /var/lib/apt/lists/*
RUN useradd --system --uid 10001 --create-home panelbench \
 && install --directory --owner panelbench --group panelbench --mode 0750 /data
COPY --from=build /opt/panelbench /opt/panelbench
COPY --from=build /opt/static /opt/static
ENV PATH=/opt/panelbench/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    DJANGO_SETTINGS_MODULE=panelbench.settings STATIC_ROOT=/opt/static PANELBENCH_DATA_DIR=/data
USER panelbench
WORKDIR /home/panelbench
VOLUME /data
EXPOSE 8000
CMD ["panelbench", "web", "--host", "0.0.0.0", "--port", "8000"]
