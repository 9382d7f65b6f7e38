/* SPDX-License-Identifier: MIT */
/*
 * When a frame from the server is fed to the cut (cut.h), and what its
 * outcome means for the frame.
 */
#include "relay_impl.h"

/* The frame is over a limit: its bytes are not kept any longer. */
void
cutting_overflow(struct to_host *t, enum over why)
{
	frame_over(t, why);
}

void
cutting_feed(struct to_host *t, const char *p, size_t n)
{
	(void)t;
	(void)p;
	(void)n;
}

void
cutting_known(struct to_host *t, uint32_t ref)
{
	(void)t;
	(void)ref;
}

int
cutting_reply(struct to_host *t, uint32_t ref, bool lf)
{
	(void)t;
	(void)ref;
	(void)lf;
	return -1;
}

void
cutting_end(struct to_host *t)
{
	t->cut = NULL;
}

void
tools_changed(struct relay *r, const struct message *m)
{
	(void)r;
	(void)m;
}

void
tools_done(struct relay *r)
{
	(void)r;
}
