/* SPDX-License-Identifier: Apache-2.0 */

/* run_table.c - the options of `run`. */

#include <stddef.h>

#include "cli/milestones.h"
#include "cli/run_options.h"

static const struct option_choice backends[] = {
	{ .name = "local" },
	{ .name = "k8s", .later = LATER_KUBERNETES },
	{ .name = NULL },
};

static const struct option_choice runtimes[] = {
	{ .name = "microvm" },
	{ .name = "kata", .later = LATER_KATA },
	{ .name = NULL },
};

static const struct option_choice flavors[] = {
	{ .name = "plain" },
	{ .name = "dind", .later = LATER_KATA },
	{ .name = NULL },
};

static const struct option_choice pulls[] = {
	{ .name = "missing" },
	{ .name = "always" },
	{ .name = "never" },
	{ .name = NULL },
};

#define FIELD(member) .offset = offsetof(struct run_args, member)

const struct option run_option_table[] = {
	{ OPTION_GROUP, .help = "Image" },
	{ OPTION_TEXT, .name = "image", .value = "REF", FIELD(image),
	  .help = "root file system of the sandbox: a name in the cache, a registry reference, "
	          "oci:DIR, docker-archive:FILE, dir:DIR, rootfs:DIR or tar:FILE (default: "
	          "RESOLUTO_SANDBOX_IMAGE, else the base image)" },
	{ OPTION_CHOICE, .name = "pull", .value = "WHEN", FIELD(pull), .choices = pulls,
	  .help = "whether the image is fetched: if it is not in the cache (the default), even so, "
	          "or not at all" },
	{ OPTION_TEXT, .name = "platform", .value = "OS/ARCH", FIELD(platform),
	  .help = "which one of an image for several platforms (default: this machine's)" },
	{ OPTION_TEXT, .name = "authfile", .value = "FILE", FIELD(authfile), .hint = HINT_FILE,
	  .help = "credentials for private registries (default: REGISTRY_AUTH_FILE, else "
	          "~/.docker/config.json)" },

	{ OPTION_GROUP, .help = "Files" },
	{ OPTION_TEXT, .name = "workspace", .value = "DIR", FIELD(workspace),
	  .hint = HINT_DIRECTORY,
	  .help = "copy the content of DIR to /workspace of the sandbox (default: nothing)" },
	{ OPTION_LIST, .name = "path", .value = "PATH", FIELD(paths), .hint = HINT_FILE,
	  .help = "only this file or tree of the workspace, relative to it; repeatable" },
	{ OPTION_LIST, .name = "exclude", .value = "NAME", FIELD(exclude),
	  .help = "leave out entries of this name anywhere in the workspace, instead of the "
	          "built-in list (.venv, node_modules, __pycache__, dist, build ...); repeatable" },
	{ OPTION_LIST, .name = "protect", .value = "NAME|PATH", FIELD(protect),
	  .help = "keep entries of this name, or the one at this path of the workspace, although "
	          "the list leaves them out; repeatable" },
	{ OPTION_LIST, .name = "output", .value = "GLOB", FIELD(outputs),
	  .help = "bring back files that match, relative to the workspace, ** for any depth; "
	          "whatever the program's exit code; repeatable" },
	{ OPTION_TEXT, .name = "output-dir", .value = "DIR", FIELD(output_dir),
	  .hint = HINT_DIRECTORY, .help = "where outputs land (default: the workspace)" },

	{ OPTION_GROUP, .help = "Program" },
	{ OPTION_TEXT, .name = "workdir", .value = "PATH", FIELD(workdir),
	  .help = "its current directory (default: /workspace if one is staged, else the image's, "
	          "else /workspace)" },
	{ OPTION_TEXT, .name = "user", .value = "USER[:GROUP]", FIELD(user),
	  .help = "name or number, never root (default: the image's, else 1000:1000)" },
	{ OPTION_LIST, .name = "env", .value = "KEY[=VALUE]", FIELD(env),
	  .help = "set a variable; KEY alone takes the value it has here; repeatable" },
	{ OPTION_TEXT, .name = "env-file", .value = "FILE", FIELD(env_file), .hint = HINT_FILE,
	  .help = "variables from KEY=VALUE lines; --env wins over them" },
	{ OPTION_FLAG, 'i', FIELD(reads_our_stdin),
	  .help = "the program reads our standard input; the same as --stdin -" },
	{ OPTION_TEXT, .name = "stdin", .value = "FILE", FIELD(stdin_file), .hint = HINT_FILE,
	  .help = "the program reads FILE; - is our standard input (default: an empty one)" },
	{ OPTION_REFUSED, 't',
	  .help = "there is no terminal inside a sandbox; use -i to pass standard input, or "
	          "nothing" },
	{ OPTION_TEXT, .name = "setup", .value = "COMMAND", FIELD(setup),
	  .help = "run before the program, as its user: a line for /bin/sh -c, or an argv as JSON "
	          "array of strings if it begins with [" },
	{ OPTION_TEXT, .name = "cleanup", .value = "COMMAND", FIELD(cleanup),
	  .help = "run behind the program, whatever its exit code; written as --setup is" },

	{ OPTION_GROUP, .help = "Limits" },
	{ OPTION_BYTES, .name = "memory", .value = "SIZE", FIELD(memory_bytes),
	  .help = "RAM of the sandbox, such as 512Mi (default: 4Gi, or all that a smaller host "
	          "has); host memory is used only as the guest touches it" },
	{ OPTION_CPUS, .name = "cpus", .value = "N", FIELD(cpu_milli),
	  .help = "processors, rounded up to whole ones (default: 2)" },
	{ OPTION_BYTES, .name = "disk", .value = "SIZE", FIELD(disk_bytes),
	  .help = "keep the files of the sandbox on a scratch disk of this size (default: in its "
	          "memory)" },
	{ OPTION_DURATION, .name = "deadline", .value = "TIME", FIELD(deadline_ms),
	  .help = "stop the run after this time, such as 90s, 15m or 1.5h, with exit status 124 "
	          "(default: none)" },
	{ OPTION_DURATION, .name = "dead-after", .value = "TIME", FIELD(dead_after_ms),
	  .help = "give a sandbox up that was silent for so long (default: 600s)" },
	{ OPTION_DURATION, .name = "drain-timeout", .value = "TIME", FIELD(drain_timeout_ms),
	  .help = "how long processes that outlive the program may hold its output open; then they "
	          "are killed, and that the output is not complete is said (default: 5s, at most "
	          "24h)" },

	{ OPTION_LIST, .name = "quota", .value = "NAME=VALUE", FIELD(quotas),
	  .help = "how much the run may store and bring back: bytes and objects of all it stores "
	          "(default: 64Gi, 900k), archive-bytes, members and ratio (unpacked to packed) of "
	          "an archive of outputs (64Gi, 1M, 500); over one of them the run ends and keeps "
	          "what was within it; repeatable" },

	{ OPTION_GROUP, .help = "Network" },
	{ OPTION_LIST, .name = "egress", .value = "NAME", FIELD(egress),
	  .help = "let the program reach NAME[:PORT] by TLS (default port: 443); *.NAME is all "
	          "names "
	          "beneath it, http://NAME plain HTTP; without any there is no network at all; "
	          "repeatable" },
	{ OPTION_TEXT, .name = "egress-file", .value = "FILE", FIELD(egress_file),
	  .hint = HINT_FILE,
	  .help = "names as --egress takes them, one a line; # begins a comment" },
	{ OPTION_FLAG, .name = "egress-wide", FIELD(egress_wide),
	  .help = "take * (every name) and *.com (a whole top-level domain) as names, too" },
	{ OPTION_FLAG, .name = "egress-learn", FIELD(egress_learn),
	  .help = "let nothing out, but note what the program asks for, and print it at the end as "
	          "--egress-file takes it" },

	{ OPTION_GROUP, .help = "Result" },
	{ OPTION_FLAG, .name = "json", FIELD(json),
	  .help = "print the result as JSON instead of the program's output" },
	{ OPTION_BYTES, .name = "max-output", .value = "SIZE", FIELD(max_output),
	  .help = "how much of each stream is kept, its head and its tail; the middle of more is "
	          "left out and counted (default: all of it, with --json 1Mi)" },
	{ OPTION_FLAG, .name = "timings", FIELD(timings),
	  .help = "print how long each step took to standard error" },
	{ OPTION_FLAG, .name = "quiet", FIELD(quiet),
	  .help = "no progress and no remarks, only errors" },
	{ OPTION_FLAG, .name = "no-redact-patterns", FIELD(no_redact_patterns),
	  .help = "do not look for what looks like a credential in the output; given secrets are "
	          "still taken out" },

	{ OPTION_GROUP, .help = "Run" },
	{ OPTION_CHOICE, .name = "backend", .value = "NAME", FIELD(backend), .choices = backends,
	  .help = "where it runs" },
	{ OPTION_CHOICE, .name = "runtime", .value = "NAME", FIELD(runtime), .choices = runtimes,
	  .help = "how it is isolated" },
	{ OPTION_CHOICE, .name = "flavor", .value = "NAME", FIELD(flavor), .choices = flavors,
	  .help = "what the sandbox offers" },
	{ OPTION_TEXT, .name = "id", .value = "ID", FIELD(id),
	  .help = "name of the run: a-z, 0-9 and -, at most 40 (default: run- and 16 hex digits)" },
	{ OPTION_LIST, .name = "label", .value = "KEY=VALUE", FIELD(labels),
	  .help = "mark the run; repeatable" },
	{ OPTION_FLAG, .name = "detach", FIELD(detach),
	  .help = "print the id of the run and end once its program has started and, with -i or "
	          "--stdin, has been given its input; the run goes on and is kept: see attach, "
	          "wait, "
	          "collect, rm" },
	{ OPTION_FLAG, .name = "keep", FIELD(keep),
	  .help = "keep what is stored of the run when it has ended, as --detach does" },
	{ OPTION_FLAG, .name = "cold", FIELD(cold),
	  .help = "boot a sandbox for this run; the only way there is in this version" },
	{ OPTION_HELP, 'h', .name = "help", .help = "print this text" },

	{ OPTION_RESERVED, .name = "store", .value = "URL", .help = LATER_STORES },
	{ OPTION_RESERVED, .name = "secret", .value = "NAME=REF", .help = LATER_STORES },
	{ OPTION_RESERVED, .name = "secret-file", .value = "FILE", .help = LATER_STORES },
	{ OPTION_RESERVED, .name = "namespace", .value = "NAME", .help = LATER_KUBERNETES },
	{ OPTION_RESERVED, .name = "context", .value = "NAME", .help = LATER_KUBERNETES },
	{ OPTION_RESERVED, .name = "runtime-class", .value = "NAME", .help = LATER_KUBERNETES },
	{ OPTION_RESERVED, .name = "runner-in-image", .help = LATER_KATA },
	{ OPTION_RESERVED, .name = "graph-size", .value = "SIZE", .help = LATER_KATA },
	{ OPTION_RESERVED, .name = "graph-backend", .value = "NAME", .help = LATER_KATA },
	{ OPTION_RESERVED, .name = "warm", .help = LATER_WARM },
	{ .kind = OPTION_END },
};
