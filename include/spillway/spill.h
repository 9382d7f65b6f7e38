/* SPDX-License-Identifier: MIT */
/*
 * The spill file: unnamed, mode 0600, one for the session (contract section
 * 4; os.md B6 and R20). Opened when the first block is put.
 */
#ifndef SPILLWAY_SPILL_H
#define SPILLWAY_SPILL_H

#include <stddef.h>

#include "spillway/budget.h"

struct spill;

/*
 * dir: the directory named by --spill-dir, or NULL: /var/tmp, then $TMPDIR,
 * a tmpfs being refused unless named. Checked now by opening and closing an
 * unnamed file, so that a wrong setting is told before anything is started;
 * the file itself is opened at the first put, on a descriptor kept in
 * reserve. On failure NULL, and why in one line in err.
 */
struct spill *spill_new(const char *dir, char *err, size_t cap);
void spill_free(struct spill **);

/* The calls for budget_new(); valid as long as the spill is. */
struct store_ops spill_ops(struct spill *);

#endif
