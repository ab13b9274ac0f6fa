#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: bench/gateway_memory.sh [CONNECTIONS]: PSS of a gateway with 500 idle connections; last line: value V MiB (at most 8).
# As root: the network is a namespace of its own.
exec unshare --net --mount --propagation private python3 "$(dirname "$0")/gateway_memory.py" "$@"
