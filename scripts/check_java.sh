#!/usr/bin/env bash
# Makes sure that Java 17 or newer is there, and says what to install when it is not.
set -euo pipefail

# Spark starts the Java of JAVA_HOME when that is set, and looks nowhere else.
java_command() {
  if [[ -z "${JAVA_HOME:-}" ]]; then
    command -v java || true
  elif [[ -x "$JAVA_HOME/bin/java" ]]; then
    echo "$JAVA_HOME/bin/java"
  fi
}

major_version() {
  "$1" -version 2>&1 | sed -nE 's/.*version "([0-9]+)(\.([0-9]+))?.*/\1 \3/p' | head -n 1 |
    awk '{ print ($1 == 1) ? $2 : $1 }'
}

found=$(java_command)
version=$([[ -n "$found" ]] && major_version "$found" || echo 0)
if (( ${version:-0} >= 17 )); then
  exit 0
fi

if [[ -z "${JAVA_HOME:-}" && "$(id -u)" == 0 && -f /etc/debian_version ]] && command -v apt-get >/dev/null; then
  echo "Java 17 or newer not found: installing openjdk-17-jre-headless"
  apt-get update -qq
  package=openjdk-17-jre-headless
  apt-cache show "$package" >/dev/null 2>&1 || package=default-jre-headless
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" && exit 0
fi

{
  if [[ -n "$found" ]]; then
    echo "error: Java 17 or newer is needed, but $found is version ${version:-unknown}"
  elif [[ -n "${JAVA_HOME:-}" ]]; then
    echo "error: Java 17 or newer is needed, and JAVA_HOME is $JAVA_HOME, without bin/java"
  else
    echo "error: Java 17 or newer is needed, and none was found in JAVA_HOME or on the PATH"
  fi
  echo "hint: install one of"
  echo "  Debian, Ubuntu:  sudo apt-get install openjdk-17-jre-headless"
  echo "  Fedora, RHEL:    sudo dnf install java-17-openjdk-headless"
  echo "  macOS:           brew install openjdk@17"
  echo "  or set JAVA_HOME to a Java 17+ installation; then run make again"
} >&2
exit 1
