#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# npm packs a package, installs it from the tarball, and runs the tests of an application that uses it.
set -eu
export npm_config_offline=true npm_config_update_notifier=false npm_config_fund=false npm_config_audit=false
(cd package && npm pack --silent --pack-destination ..)
cd app
npm install --foreground-scripts --no-progress ../greeting-1.2.3.tgz
npm ls
npm test
