/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "packed_names.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define BLOCK_BYTES	 8192
#define LEVEL		 (-1)
#define DICT_BYTES	 (64U << 10)
#define DICT_PIECE_BYTES 256

struct packed_names {
	size_t size; /* of the names */
	size_t block_cnt;
	uint32_t *ends; /* of each block in packed */
	char *packed;
	char *dict_bytes;
	ZSTD_DDict *dict; /* refers to dict_bytes */

	pthread_mutex_t lock; /* of the rest */
	ZSTD_DCtx *ctx;
	size_t block; /* the one in unpacked; block_cnt: none */
	char unpacked[BLOCK_BYTES];
};

struct packer {
	ZSTD_CCtx *ctx;
	ZSTD_CDict *dict;
};

/* Pieces from all over the names: what is near has much in common, what is far has a little. */
static void take_sample(struct packed_names *p, const char *names)
{
	const size_t cnt = DICT_BYTES / DICT_PIECE_BYTES;
	const size_t step = (p->size - DICT_PIECE_BYTES) / cnt;

	for (size_t i = 0; i < cnt; i++)
		memcpy(p->dict_bytes + i * DICT_PIECE_BYTES, names + i * step, DICT_PIECE_BYTES);
}

static int packer_init(struct packer *k, const struct packed_names *p)
{
	k->ctx = ZSTD_createCCtx();
	k->dict = ZSTD_createCDict(p->dict_bytes, DICT_BYTES, LEVEL);
	return !k->ctx || !k->dict || ZSTD_isError(ZSTD_CCtx_refCDict(k->ctx, k->dict)) ||
	       /* blocks know their size: all but the last have the same */
	       ZSTD_isError(ZSTD_CCtx_setParameter(k->ctx, ZSTD_c_contentSizeFlag, 0));
}

static void packer_fini(struct packer *k)
{
	ZSTD_freeCDict(k->dict);
	ZSTD_freeCCtx(k->ctx);
}

static size_t block_bytes(const struct packed_names *p, size_t block)
{
	size_t left = p->size - block * BLOCK_BYTES;

	return left < BLOCK_BYTES ? left : BLOCK_BYTES;
}

/* 0 if it all fits in cap bytes, which are in p->packed. */
static int pack_blocks(struct packed_names *p, struct packer *k, const char *names, size_t cap)
{
	size_t used = 0;

	for (size_t i = 0; i < p->block_cnt; i++) {
		size_t n = ZSTD_compress2(k->ctx, p->packed + used, cap - used,
					  names + i * BLOCK_BYTES, block_bytes(p, i));

		if (ZSTD_isError(n))
			return -1;
		used += n;
		p->ends[i] = (uint32_t)used;
	}

	char *packed = used ? realloc(p->packed, used) : NULL;
	if (packed)
		p->packed = packed;
	return 0;
}

static int pack(struct packed_names *p, const char *names)
{
	const size_t cap = p->size / 2; /* more is not worth it */
	struct packer k = {0};
	int err;

	p->ends = malloc(p->block_cnt * sizeof(*p->ends));
	p->packed = malloc(cap);
	p->dict_bytes = malloc(DICT_BYTES);
	p->ctx = ZSTD_createDCtx();
	if (!p->ends || !p->packed || !p->dict_bytes || !p->ctx)
		return -1;
	take_sample(p, names);
	err = packer_init(&k, p);
	if (!err)
		err = pack_blocks(p, &k, names, cap);
	packer_fini(&k);
	if (err)
		return err;
	p->dict = ZSTD_createDDict(p->dict_bytes, DICT_BYTES);
	return !p->dict || ZSTD_isError(ZSTD_DCtx_refDDict(p->ctx, p->dict));
}

struct packed_names *packed_names_new(const char *names, size_t size)
{
	struct packed_names *p;

	if (size < 4 * DICT_BYTES || size > UINT32_MAX)
		return NULL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	pthread_mutex_init(&p->lock, NULL);
	p->size = size;
	p->block = p->block_cnt = (size + BLOCK_BYTES - 1) / BLOCK_BYTES;
	if (!pack(p, names))
		return p;
	packed_names_free(p);
	return NULL;
}

void packed_names_free(struct packed_names *p)
{
	if (!p)
		return;
	ZSTD_freeDDict(p->dict);
	ZSTD_freeDCtx(p->ctx);
	free(p->ends);
	free(p->packed);
	free(p->dict_bytes);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

size_t packed_names_bytes(const struct packed_names *p)
{
	return sizeof(*p) + p->block_cnt * sizeof(*p->ends) + p->ends[p->block_cnt - 1] +
	       DICT_BYTES + ZSTD_sizeof_DDict(p->dict) + ZSTD_sizeof_DCtx(p->ctx);
}

/* With the lock held: p->unpacked is that block. */
static int unpack(struct packed_names *p, size_t block)
{
	size_t from = block ? p->ends[block - 1] : 0, n;

	if (p->block == block)
		return 0;
	p->block = p->block_cnt;
	n = ZSTD_decompressDCtx(p->ctx, p->unpacked, sizeof(p->unpacked), p->packed + from,
				p->ends[block] - from);
	if (ZSTD_isError(n) || n != block_bytes(p, block))
		return -1;
	p->block = block;
	return 0;
}

/* Appends what a block has of a string. 1: it goes on in the next block; negative: no memory. */
static int append(char **text, size_t *len, const char *from, size_t max)
{
	size_t n = strnlen(from, max);
	char *longer = realloc(*text, *len + n + 1);

	if (!longer)
		return -1;
	memcpy(longer + *len, from, n);
	*len += n;
	longer[*len] = '\0';
	*text = longer;
	return n == max;
}

char *packed_names_copy(struct packed_names *p, size_t offset, size_t max)
{
	char *text = NULL;
	size_t len = 0;
	int more = 1;

	pthread_mutex_lock(&p->lock);
	while (more == 1 && offset < p->size && len < max) {
		size_t at = offset % BLOCK_BYTES, block = offset / BLOCK_BYTES;
		size_t n = block_bytes(p, block) - at;

		n = n < max - len ? n : max - len;
		more = unpack(p, block) ? -1 : append(&text, &len, p->unpacked + at, n);
		offset += n;
	}
	pthread_mutex_unlock(&p->lock);
	if (more >= 0)
		return text;
	free(text);
	return NULL;
}
