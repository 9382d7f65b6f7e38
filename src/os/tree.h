/* SPDX-License-Identifier: MIT */
/*
 * The processes that descend from this one.
 */
#ifndef TREE_H
#define TREE_H

/*
 * Signal all of them, zombies included; 0 signals none. Returns how many were
 * met, which is 0 too where /proc tells no children. A process that dies
 * meanwhile hands its children to its reaper: call again until none is left.
 */
unsigned tree_signal(int sig);

#endif
