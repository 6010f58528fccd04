#!/bin/sh
# Brings the servers that the tests of the connectors start: Kafka's jars, into the folder that is named, from Maven
# Central; PostgreSQL from Debian's packages, where they can be installed. What cannot be had is said, and its tests
# are skipped with that reason.
set -eu
jars=$1

as_root() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

if [ -z "$(ls "$jars" 2>/dev/null)" ]; then
	if ! command -v mvn >/dev/null && as_root; then
		apt-get install -qq -y --no-install-recommends maven >/dev/null
	fi
	if command -v mvn >/dev/null; then
		mvn -q -B -f "$(dirname "$0")/pom.xml" dependency:copy-dependencies "-DoutputDirectory=$jars"
	else
		echo "Kafka is not tested: there is no mvn, which brings the broker"
	fi
fi

if ! command -v initdb >/dev/null && ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then
	if as_root; then
		apt-get install -qq -y --no-install-recommends postgresql >/dev/null
	else
		echo "PostgreSQL is not tested: install its server, as by apt-get install postgresql"
	fi
fi
