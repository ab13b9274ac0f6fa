#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cargo builds a program with a dependency, runs it and its tests, without a network.
set -eu
export CARGO_HOME="$HOME/cargo" CARGO_NET_OFFLINE=true CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_TEST_DEBUG=0
test "$(cargo run --offline --quiet)" = 168
cargo test --offline
