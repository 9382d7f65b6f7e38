/* SPDX-License-Identifier: MIT */
/*
 * All processes below this one, from /proc: across groups, sessions and
 * double forks, as long as this one is their reaper. It allocates nothing but
 * what opendir() does.
 */
#include "tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define DEPTH_MAX 64 /* of the tree that is walked by recursion */

/* One decimal number from a small file; returns behind it, or NULL. */
static char *
next_pid(char *p, pid_t *pid)
{
	long n = 0;

	while (*p == ' ')
		p++;
	if (*p < '0' || *p > '9')
		return NULL;
	for (; *p >= '0' && *p <= '9'; p++)
		n = n * 10 + (*p - '0');
	*pid = (pid_t)n;
	return p;
}

static void walk(pid_t, int depth, int sig, unsigned *count);

/* Children of one thread; a list longer than buf is met again next round. */
static void
walk_task(const char *path, int depth, int sig, unsigned *count)
{
	char buf[4096];
	char *p = buf;
	pid_t pid;
	ssize_t n;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	n = read(fd, buf, sizeof buf - 1);
	close(fd);
	if (n <= 0)
		return;
	buf[n] = '\0';
	if ((size_t)n == sizeof buf - 1) { /* the last may be cut */
		char *last = strrchr(buf, ' ');

		if (last != NULL)
			*last = '\0';
	}
	while ((p = next_pid(p, &pid)) != NULL)
		walk(pid, depth + 1, sig, count);
}

/*
 * Signal pid (unless it is us) and all below it, children first met first:
 * a process that dies hands its children to us, where the next round finds
 * them.
 */
static void
walk(pid_t pid, int depth, int sig, unsigned *count)
{
	char path[64];
	struct dirent *d;
	DIR *dir;

	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	dir = depth < DEPTH_MAX ? opendir(path) : NULL;
	while (dir != NULL && (d = readdir(dir)) != NULL) {
		char children[64 + sizeof d->d_name];

		if (d->d_name[0] == '.')
			continue;
		snprintf(children, sizeof children, "/proc/%d/task/%s/children",
		    (int)pid, d->d_name);
		walk_task(children, depth, sig, count);
	}
	if (dir != NULL)
		closedir(dir);
	if (depth == 0)
		return;
	++*count;
	if (sig != 0)
		(void)kill(pid, sig); /* gone already, or not ours to signal */
}

unsigned
tree_signal(int sig)
{
	unsigned count = 0;

	walk(getpid(), 0, sig, &count);
	return count;
}
