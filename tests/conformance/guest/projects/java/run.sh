#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# javac compiles a program, the virtual machine runs it.
set -eu
javac -J-XX:TieredStopAtLevel=1 -d classes Main.java
java -cp classes Main
