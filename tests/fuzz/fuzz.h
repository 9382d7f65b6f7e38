/* SPDX-License-Identifier: MIT */
/*
 * A fuzz target is one function; it is linked with libFuzzer, or with
 * standalone.c, which feeds it files. What it finds wrong it tells kit_fail(),
 * which aborts.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

#endif
