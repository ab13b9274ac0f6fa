#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: bench/egress.sh [MIB]: through the gateway, from servers in a namespace without a way out (root):
#	a large TLS transfer against the same client in the same machine over QEMU's user network: ratio (at least 0.4)
#	a plain http:// stream: value MB/s (at least 60)
#	from connect() to the first byte of an answer against the same from the host: value ms more (at most 15)
exec python3 "$(dirname "$0")/egress.py" "$@"
