#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What a compiler at run time does, without the compiler: one thread writes code, another one runs it.
set -eu
gcc -O1 -pthread -o /tmp/code main.c
/tmp/code 1000
