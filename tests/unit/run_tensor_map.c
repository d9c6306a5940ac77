/* The rules of tensor maps: what is let through, and what each refusal says. */
#include <config.h>

#include "run/tensor_map.h"
#include "tap.h"

/* A matrix of f16, 1000 rows of 520, in boxes of 128 rows of 64. */
static struct device_tensor_map good(void)
{
    return (struct device_tensor_map){.address = 0x1000,
                                      .type = DT_F16,
                                      .rank = 2,
                                      .dim = {520, 1000},
                                      .stride = {2, 1040},
                                      .box = {64, 128},
                                      .step = {1, 1},
                                      .swizzle = 128,
                                      .promotion = 256};
}

/* NC/8HWC8: 14 by 12 pixels, 3 slices of 8 channels, 5 images. */
static struct device_tensor_map interleaved(void)
{
    return (struct device_tensor_map){.address = 0x1000,
                                      .type = DT_F16,
                                      .rank = 4,
                                      .dim = {14, 12, 3, 5},
                                      .stride = {2, 224, 2688, 8064},
                                      .box = {7, 3, 1, 1},
                                      .step = {2, 1, 1, 1},
                                      .interleave = 16};
}

static const char *refusal(struct arena *a, const struct device_tensor_map *m)
{
    struct diags *d = diags_new(a);
    const bool fine = device_tensor_map_check(m, "a", SPAN_NONE, d);
    if (device_tensor_map_check(m, NULL, SPAN_NONE, NULL) != fine)
        return "another answer without messages";
    if (fine)
        return d->nerror ? "an error, and true" : "";
    return d->nerror == 1 ? d->list.v[0].text : "false without one error";
}

#define REFUSES(MAP, CHANGE, WORDS)                                              \
    do {                                                                         \
        struct device_tensor_map m = MAP;                                        \
        CHANGE;                                                                  \
        const char *text = refusal(a, &m);                                       \
        ok(strstr(text, WORDS) && strstr(text, "'a'"), "%s: %s", #CHANGE, text); \
    } while (0)
#define ALLOWS(MAP, CHANGE)                        \
    do {                                           \
        struct device_tensor_map m = MAP;          \
        CHANGE;                                    \
        eq_str(refusal(a, &m), "", "%s", #CHANGE); \
    } while (0)

static void kinds(struct arena *a)
{
    ALLOWS(good(), (void)m);
    ALLOWS(interleaved(), (void)m);
    ALLOWS(good(), m.nan_fill = true);
    ALLOWS(good(), m.type = DT_F32; m.tf32 = true; m.stride[0] = 4; m.stride[1] = 2080;
           m.box[0] = 32);
    REFUSES(good(), m.tf32 = true, "f16 are not rounded to tf32");
    ALLOWS(good(), m.type = DT_E4M3; m.stride[0] = 1; m.box[0] = 128);
    ALLOWS(good(), m.type = DT_U4; m.stride[0] = 1; m.box[0] = 16);
    REFUSES(good(), m.rank = 0, "rank 0");
    REFUSES(good(), m.rank = 6, "1 to 5 dimensions");
    REFUSES(good(), m.type = DT_VOID, "one of 8 to 64 bits");
    REFUSES(good(), m.swizzle = 96, "swizzle 96");
    REFUSES(good(), m.interleave = 64, "interleave 64");
    REFUSES(good(), m.promotion = 32, "32 bytes");
    REFUSES(good(), m.type = DT_I16; m.nan_fill = true, "i16 have no NaN");
    REFUSES(good(), m.type = DT_E5M2; m.nan_fill = true, "fill with 0");
}

static void memory(struct arena *a)
{
    ALLOWS(good(), m.dim[1] = (uint64_t)1 << 32);
    ALLOWS(good(), m.stride[1] = ((uint64_t)1 << 40) - 16);
    REFUSES(good(), m.address = 0, "not 0");
    REFUSES(good(), m.address += 8, "multiple of 16");
    REFUSES(good(), m.dim[0] = 0, "dimension 0 is 0");
    REFUSES(good(), m.dim[1] = ((uint64_t)1 << 32) + 1, "dimension 1 is 4294967297");
    REFUSES(good(), m.stride[0] = 4, "2 bytes apart");
    REFUSES(good(), m.stride[1] = 1000, "multiple of 16: pad the rows");
    REFUSES(good(), m.stride[1] = (uint64_t)1 << 40, "below 2^40");
    /* what is behind the last dimension does not matter */
    ALLOWS(good(), m.dim[2] = 0; m.stride[2] = 3);
}

static void boxes(struct arena *a)
{
    ALLOWS(good(), m.box[1] = 256; m.step[1] = 8);
    ALLOWS(good(), m.swizzle = 0; m.box[0] = 256);
    REFUSES(good(), m.box[1] = 0, "dimension 1 of its box is 0");
    REFUSES(good(), m.box[1] = 257, "1 to 256");
    REFUSES(good(), m.step[1] = 0, "step 0 in dimension 1");
    REFUSES(good(), m.step[1] = 9, "1 to 8");
    REFUSES(good(), m.step[0] = 2, "every element");
    REFUSES(good(), m.box[0] = 60, "has 120 bytes; they must be a multiple of 16");
    REFUSES(good(), m.box[0] = 72, "has 144 bytes and swizzle 128 room for 128");
    REFUSES(good(), m.swizzle = 64, "swizzle 64 room for 64");
}

static void interleave(struct arena *a)
{
    ALLOWS(interleaved(), m.swizzle = 128);
    ALLOWS(interleaved(), m.interleave = 32; m.swizzle = 32);
    REFUSES(interleaved(), m.rank = 2, "3 to 5 dimensions, not 2");
    REFUSES(interleaved(), m.interleave = 32, "goes with swizzle 32, not 0");
    REFUSES(interleaved(), m.box[2] = 2, "dimension 2 must be 1, not 2");
    REFUSES(interleaved(), m.interleave = 32; m.swizzle = 32; m.address += 16, "multiple of 32");
    REFUSES(interleaved(), m.interleave = 32; m.swizzle = 32; m.stride[1] += 16, "multiple of 32");
}

/* 14 x 12 pixels of 64 channels, 5 images, for windows of 3 x 3 with a border. */
static struct device_tensor_map windows(void)
{
    return (struct device_tensor_map){.address = 0x1000,
                                      .type = DT_F16,
                                      .rank = 4,
                                      .dim = {64, 14, 12, 5},
                                      .stride = {2, 128, 1792, 21504},
                                      .box = {64, 128},
                                      .step = {1, 1, 1, 1},
                                      .swizzle = 128,
                                      .im2col = true,
                                      .lower = {-1, -1},
                                      .upper = {-1, -1}};
}

static void pixels(struct arena *a)
{
    struct device_tensor_map w = windows();
    ALLOWS(windows(), (void)m);
    ALLOWS(windows(), m.box[1] = 1024);
    ALLOWS(windows(), m.lower[0] = -128; m.upper[1] = 127);
    ALLOWS(windows(), m.rank = 3; m.lower[0] = -32768);
    ALLOWS(windows(), m.rank = 5; m.dim[4] = 1; m.stride[4] = 128; m.step[4] = 1; m.lower[2] = -16;
           m.upper[2] = 15);
    ALLOWS(windows(), m.lower[0] = 13; m.upper[0] = 0);
    REFUSES(windows(), m.rank = 2, "pixels of 2 dimensions");
    REFUSES(windows(), m.interleave = 16; m.swizzle = 0, "interleave 16");
    REFUSES(windows(), m.box[0] = 0, "0 channels");
    REFUSES(windows(), m.box[0] = 257; m.swizzle = 0, "257 channels");
    REFUSES(windows(), m.box[0] = 72, "swizzle 128 room for 128");
    REFUSES(windows(), m.box[0] = 4, "multiple of 16");
    REFUSES(windows(), m.box[1] = 0, "a copy of 0 pixels");
    REFUSES(windows(), m.box[1] = 1025, "1 to 1024");
    REFUSES(windows(), m.step[1] = 0, "step 0 in dimension 1");
    REFUSES(windows(), m.step[2] = 9, "1 to 8");
    REFUSES(windows(), m.step[3] = 2, "images, which are taken one by one");
    REFUSES(windows(), m.step[0] = 2, "every element");
    REFUSES(windows(), m.lower[0] = -129, "of 4 dimensions they must be -128 to 127");
    REFUSES(windows(), m.upper[1] = 128, "corners in dimension 2 are -1 and 128");
    REFUSES(windows(), m.rank = 3; m.upper[0] = 32768, "-32768 to 32767");
    REFUSES(windows(), m.rank = 5; m.dim[4] = 1; m.stride[4] = 128; m.step[4] = 1;
            m.lower[2] = -17, "-16 to 15");
    REFUSES(windows(), m.lower[0] = 14; m.upper[0] = 0, "no window begins in dimension 1");
    REFUSES(windows(), m.upper[1] = -13, "no window begins in dimension 2");
    REFUSES(windows(), m.dim[1] = (uint64_t)1 << 31, "2147483648 pixels");
    eq_int(device_tensor_starts(&w, 0), 14, "as many windows as pixels");
    w.step[1] = 3;
    w.upper[0] = 0;
    eq_int(device_tensor_starts(&w, 0), 5, "-1, 2, 5, 8, 11 of -1 to 13");
    eq_int(device_tensor_bytes(&w), 16384, "bytes of a copy");
}

static void sizes(void)
{
    struct device_tensor_map m = good();
    eq_int(device_tensor_bytes(&m), 16384, "bytes of a box");
    eq_int(device_tensor_pitch(&m), 128, "its rows");
    m.box[0] = 16;
    m.step[1] = 3;
    eq_int(device_tensor_count(&m, 1), 43, "every third of 128 rows");
    eq_int(device_tensor_bytes(&m), 43 * 32, "bytes of what is taken");
    eq_int(device_tensor_pitch(&m), 128, "a row takes a whole span");
    eq_int(device_tensor_footprint(&m), 43 * 128, "gaps included");
    m = interleaved();
    eq_int(device_tensor_unit(&m), 16, "a slice of channels");
    eq_int(device_tensor_bytes(&m), 4 * 16 * 3, "every second of 7, 3 rows");
}

int main(void)
{
    struct arena *a = arena_new();
    kinds(a);
    memory(a);
    boxes(a);
    interleave(a);
    pixels(a);
    sizes();
    arena_free(a);
    return tap_done();
}
