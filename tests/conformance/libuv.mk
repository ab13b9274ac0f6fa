# SPDX-License-Identifier: Apache-2.0
# libuv and its tests as one program, without autotools and cmake; run in its unpacked source.
unix := async core dl epoll fs getaddrinfo getnameinfo loop loop-watcher pipe poll process random-devurandom signal \
	stream tcp thread tty udp proctitle linux-core linux-inotify linux-syscalls procfs-exepath random-getrandom \
	random-sysctl-linux
lib := $(wildcard src/*.c $(unix:%=src/unix/%.c))
tests := $(wildcard test/test-*.c) $(addprefix test/,blackhole-server.c echo-server.c run-tests.c runner.c runner-unix.c)
flags := -O1 -w -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -Iinclude -Isrc -Itest

# Three tests include a file of the library: theirs counts.
uv_run_tests: $(tests:.c=.o) libuv.a
	$(CC) -Wl,-z,muldefs -o $@ $^ -pthread -ldl -lrt -lutil

libuv.a: $(lib:.c=.o)
	$(AR) rcs $@ $^

%.o: %.c
	$(CC) $(flags) -pthread -c -o $@ $<
