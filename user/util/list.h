/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Doubly linked lists whose links are members of the items. */
#ifndef VP_LIST_H
#define VP_LIST_H

#include <stddef.h>

struct vp_link {
	struct vp_link *prev, *next;
};

/* All zero is an empty list. It owns nothing. */
struct vp_list {
	struct vp_link *first, *last;
};

/* The item whose member a link is; the link must not be NULL. */
#define vp_list_item(link, type, member) ((type *)((char *)(link)-offsetof(type, member)))

static inline void vp_list_append(struct vp_list *list, struct vp_link *l)
{
	l->prev = list->last;
	l->next = NULL;
	if (list->last)
		list->last->next = l;
	else
		list->first = l;
	list->last = l;
}

/* l must be in this list. */
static inline void vp_list_remove(struct vp_list *list, struct vp_link *l)
{
	if (l->prev)
		l->prev->next = l->next;
	else
		list->first = l->next;
	if (l->next)
		l->next->prev = l->prev;
	else
		list->last = l->prev;
}

#endif
