# SPDX-License-Identifier: Apache-2.0
# For fingers; the build is Meson's.
all: ; @test -f build/build.ninja || meson setup build; ninja -C build
check: all ; meson configure build -Dtests=true && meson test -C build --suite unit --suite contract --suite fuzz --suite rules
install: all ; meson install -C build
clean: ; rm -rf build
.PHONY: all check install clean
