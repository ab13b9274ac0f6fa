#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# javac compiles a program, the virtual machine runs it.  One that crashes prints its report: a file is gone with
# the sandbox.
set -eu
javac -J-XX:+ErrorFileToStdout -J-XX:TieredStopAtLevel=1 -d classes Main.java
java -XX:+ErrorFileToStdout -cp classes Main
