#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The Go toolchain builds a program and runs the tests of its package.
set -eu
export GOFLAGS=-mod=mod GOPROXY=off GOTOOLCHAIN=local GOCACHE="$HOME/go-cache" CGO_ENABLED=0
go build -o count-words ./cmd/count
test "$(./count-words 'a b' 'c d e' 2>&1)" = 5
go vet .
go test -v .
