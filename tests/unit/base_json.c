#include <config.h>

#include "base/json.h"
#include "tap.h"

static void write_sample(struct json *j)
{
    json_object(j, NULL);
    json_str(j, "kernel", "saxpy");
    json_array(j, "sizes");
    json_int(j, NULL, -3);
    json_uint(j, NULL, UINT64_MAX);
    json_end(j);
    json_object(j, "empty");
    json_end(j);
    json_double(j, "x", 0.1);
    json_double(j, "nan", (double)NAN);
    json_double(j, "inf", -(double)INFINITY);
    json_bool(j, "good", true);
    json_null(j, "none");
    json_str(j, "absent", NULL);
    json_end(j);
}

static void test_layout(struct arena *a)
{
    struct buf one = buf_in(a), many = buf_in(a);
    struct json j = json_in(&one, 0);
    write_sample(&j);
    eq_str(
        buf_text(&one),
        "{\"kernel\": \"saxpy\", \"sizes\": [-3, 18446744073709551615], \"empty\": {}, \"x\": 0.1, "
        "\"nan\": null, \"inf\": null, \"good\": true, \"none\": null, \"absent\": null}",
        "on one line");
    j = json_in(&many, 2);
    json_object(&j, NULL);
    json_array(&j, "a");
    json_int(&j, NULL, 1);
    json_int(&j, NULL, 2);
    json_end(&j);
    json_end(&j);
    eq_str(buf_text(&many), "{\n  \"a\": [\n    1,\n    2\n  ]\n}", "indented");
}

static void string_is(struct arena *a, const char *s, const char *want, const char *what)
{
    struct buf b = buf_in(a);
    struct json j = json_in(&b, 0);
    json_str(&j, NULL, s);
    eq_str(buf_text(&b), want, "%s", what);
}

static void test_strings(struct arena *a)
{
    string_is(a, "a\"b\\c\n\t\x01\x7f", "\"a\\\"b\\\\c\\n\\t\\u0001\\u007f\"",
              "what must be escaped is");
    string_is(a, "\xc3\xa9\xf0\x9f\x98\x80", "\"\xc3\xa9\xf0\x9f\x98\x80\"", "UTF-8 is left alone");
    string_is(a,
              "\xff"
              "x\xc3",
              "\"\xef\xbf\xbdx\xef\xbf\xbd\"", "stray bytes are replaced");
    string_is(a, "\xc0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\"", "overlong forms are not UTF-8");
    string_is(a, "\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"",
              "surrogates are not UTF-8");
}

int main(void)
{
    struct arena *a = arena_new();
    test_layout(a);
    test_strings(a);
    arena_free(a);
    return tap_done();
}
