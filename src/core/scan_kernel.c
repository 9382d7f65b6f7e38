/* SPDX-License-Identifier: MIT */
/*
 * Kernels for the inside of strings, and the choice among them: whatever the
 * machine has, found at run time where a program for the oldest machine may
 * run on a newer one (x86-64). Below the vector units there is one that reads
 * words of eight bytes, and one that leaves all to the scanner, the reference
 * for the others. None of them keeps state.
 */
#include "scan_impl.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__) && defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#define ALWAYS __attribute__((always_inline)) static inline

#if defined(__x86_64__)

/* --- SSE2: every x86-64 has it --- */

struct sse2_block {
	__m128i v[4];
};

ALWAYS struct sse2_block
sse2_load(const char *p)
{
	struct sse2_block b;

	for (int i = 0; i < 4; i++)
		b.v[i] = _mm_loadu_si128((const __m128i *)(p + 16 * i));
	return b;
}

ALWAYS uint64_t
sse2_mask(__m128i v, int i)
{
	return (uint64_t)(uint32_t)_mm_movemask_epi8(v) << (16 * i);
}

ALWAYS __m128i
sse2_within(__m128i v, uint8_t low, uint8_t high)
{
	__m128i up = _mm_sub_epi8(v, _mm_set1_epi8((char)low));
	__m128i span = _mm_set1_epi8((char)(high - low));

	return _mm_cmpeq_epi8(_mm_min_epu8(up, span), up);
}

ALWAYS uint64_t
sse2_range(struct sse2_block b, uint8_t low, uint8_t high)
{
	uint64_t mask = 0;

	for (int i = 0; i < 4; i++)
		mask |= sse2_mask(sse2_within(b.v[i], low, high), i);
	return mask;
}

ALWAYS uint64_t
sse2_equal(struct sse2_block b, uint8_t c)
{
	uint64_t mask = 0;

	for (int i = 0; i < 4; i++)
		mask |= sse2_mask(_mm_cmpeq_epi8(b.v[i],
		    _mm_set1_epi8((char)c)), i);
	return mask;
}

ALWAYS bool
sse2_plain(struct sse2_block b)
{
	__m128i any = _mm_setzero_si128();

	for (int i = 0; i < 4; i++) {
		__m128i v = b.v[i];

		/* As signed bytes, 0x80 and above are below 0x20, too. */
		any = _mm_or_si128(any, _mm_or_si128(
		    _mm_cmplt_epi8(v, _mm_set1_epi8(0x20)), _mm_or_si128(
		    _mm_cmpeq_epi8(v, _mm_set1_epi8('"')),
		    _mm_cmpeq_epi8(v, _mm_set1_epi8('\\')))));
	}
	return _mm_movemask_epi8(any) == 0;
}

#define BLOCK(name) sse2_##name
#define BLOCK_FN static inline
#include "scan_block.h"
#undef BLOCK
#undef BLOCK_FN

/* --- AVX2 --- */

#define AVX2 __attribute__((target("avx2,bmi"))) static inline

struct avx2_block {
	__m256i a;
	__m256i b;
};

AVX2 struct avx2_block
avx2_load(const char *p)
{
	return (struct avx2_block){
		_mm256_loadu_si256((const __m256i *)p),
		_mm256_loadu_si256((const __m256i *)(p + 32)),
	};
}

AVX2 uint64_t
avx2_mask(__m256i a, __m256i b)
{
	return (uint64_t)(uint32_t)_mm256_movemask_epi8(b) << 32 |
	    (uint32_t)_mm256_movemask_epi8(a);
}

AVX2 __m256i
avx2_within(__m256i v, uint8_t low, uint8_t high)
{
	__m256i up = _mm256_sub_epi8(v, _mm256_set1_epi8((char)low));
	__m256i span = _mm256_set1_epi8((char)(high - low));

	return _mm256_cmpeq_epi8(_mm256_min_epu8(up, span), up);
}

AVX2 uint64_t
avx2_range(struct avx2_block b, uint8_t low, uint8_t high)
{
	return avx2_mask(avx2_within(b.a, low, high),
	    avx2_within(b.b, low, high));
}

AVX2 uint64_t
avx2_equal(struct avx2_block b, uint8_t c)
{
	__m256i v = _mm256_set1_epi8((char)c);

	return avx2_mask(_mm256_cmpeq_epi8(b.a, v),
	    _mm256_cmpeq_epi8(b.b, v));
}

AVX2 __m256i
avx2_special(__m256i v)
{
	__m256i below = _mm256_cmpgt_epi8(_mm256_set1_epi8(0x20), v);
	__m256i quote = _mm256_cmpeq_epi8(v, _mm256_set1_epi8('"'));
	__m256i slash = _mm256_cmpeq_epi8(v, _mm256_set1_epi8('\\'));

	return _mm256_or_si256(below, _mm256_or_si256(quote, slash));
}

AVX2 bool
avx2_plain(struct avx2_block b)
{
	__m256i any = _mm256_or_si256(avx2_special(b.a), avx2_special(b.b));

	return _mm256_testz_si256(any, any);
}

#define BLOCK(name) avx2_##name
#define BLOCK_FN AVX2
#include "scan_block.h"
#undef BLOCK
#undef BLOCK_FN

#elif defined(__aarch64__) && defined(__ARM_NEON)

/* --- NEON: every AArch64 has it --- */

struct neon_block {
	uint8x16_t v[4];
};

ALWAYS struct neon_block
neon_load(const char *p)
{
	struct neon_block b;

	for (int i = 0; i < 4; i++)
		b.v[i] = vld1q_u8((const uint8_t *)p + 16 * i);
	return b;
}

/* A bit per byte of 0 or 0xff: weigh them, and add up neighbours. */
ALWAYS uint64_t
neon_mask(const uint8x16_t v[4])
{
	static const uint8_t weights[16] = { 1, 2, 4, 8, 16, 32, 64, 128, 1, 2,
		4, 8, 16, 32, 64, 128 };
	uint8x16_t w = vld1q_u8(weights);
	uint8x16_t low = vpaddq_u8(vandq_u8(v[0], w), vandq_u8(v[1], w));
	uint8x16_t high = vpaddq_u8(vandq_u8(v[2], w), vandq_u8(v[3], w));
	uint8x16_t sum = vpaddq_u8(low, high);

	sum = vpaddq_u8(sum, sum);
	return vgetq_lane_u64(vreinterpretq_u64_u8(sum), 0);
}

ALWAYS uint64_t
neon_range(struct neon_block b, uint8_t low, uint8_t high)
{
	for (int i = 0; i < 4; i++)
		b.v[i] = vcleq_u8(vsubq_u8(b.v[i], vdupq_n_u8(low)),
		    vdupq_n_u8((uint8_t)(high - low)));
	return neon_mask(b.v);
}

ALWAYS uint64_t
neon_equal(struct neon_block b, uint8_t c)
{
	for (int i = 0; i < 4; i++)
		b.v[i] = vceqq_u8(b.v[i], vdupq_n_u8(c));
	return neon_mask(b.v);
}

ALWAYS bool
neon_plain(struct neon_block b)
{
	uint8x16_t any = vdupq_n_u8(0);

	for (int i = 0; i < 4; i++) {
		uint8x16_t low = vcltq_s8(vreinterpretq_s8_u8(b.v[i]),
		    vdupq_n_s8(0x20));
		uint8x16_t quote = vceqq_u8(b.v[i], vdupq_n_u8('"'));
		uint8x16_t slash = vceqq_u8(b.v[i], vdupq_n_u8('\\'));

		any = vorrq_u8(any, vorrq_u8(low, vorrq_u8(quote, slash)));
	}
	return vmaxvq_u8(any) == 0;
}

#define BLOCK(name) neon_##name
#define BLOCK_FN static inline
#include "scan_block.h"
#undef BLOCK
#undef BLOCK_FN

#endif

static const char *
swar_skip(const char *p, const char *end)
{
	while (end - p >= 8 && scan_special(scan_load(p)) == 0)
		p += 8;
	return p;
}

static const char *
scalar_skip(const char *p, const char *end)
{
	(void)end;
	return p;
}

/* The best first. */
static const struct scan_body bodies[] = {
#if defined(__x86_64__)
	{ "avx2", avx2_skip, 64 },
	{ "sse2", sse2_skip, 64 },
#elif defined(__aarch64__) && defined(__ARM_NEON)
	{ "neon", neon_skip, 64 },
#endif
	{ "swar", swar_skip, 8 },
	{ "scalar", scalar_skip, SIZE_MAX },
};

#define BODIES (sizeof(bodies) / sizeof(bodies[0]))

/* The one variable of the core: a property of the machine, found once. */
static const struct scan_body *chosen;

static bool
supported(const struct scan_body *body)
{
#if defined(__x86_64__)
	if (strcmp(body->name, "avx2") == 0)
		return __builtin_cpu_supports("avx2") &&
		    __builtin_cpu_supports("bmi");
#else
	(void)body;
#endif
	return true;
}

const struct scan_body *
scan_body_chosen(void)
{
	for (size_t i = 0; chosen == NULL && i < BODIES; i++)
		if (supported(&bodies[i]))
			chosen = &bodies[i];
	return chosen;
}

const char *
scan_kernel(void)
{
	return scan_body_chosen()->name;
}

bool
scan_set_kernel(const char *name)
{
	for (size_t i = 0; i < BODIES; i++) {
		if (strcmp(bodies[i].name, name) != 0)
			continue;
		if (!supported(&bodies[i]))
			return false;
		chosen = &bodies[i];
		return true;
	}
	return false;
}
