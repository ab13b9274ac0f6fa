/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* generate.h - man page and completions, made from the tables when the project is built. */

#include "cli/command.h"
#include "cli/text.h"

typedef void generate_fn(struct text *out, const struct command *const *commands);

generate_fn generate_man, generate_bash, generate_zsh, generate_fish;

/* Calls each() for every usable command that has options, with its words: "run", "image rm". */
void generate_each(const struct command *const *commands,
                   void (*each)(struct text *out, const struct command *command, const char *path),
                   struct text *out);
