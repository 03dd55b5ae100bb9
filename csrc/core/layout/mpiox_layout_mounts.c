/*
 * mpiox_layout_mounts.c - reading /proc/self/fdinfo, mountinfo and mountstats (proc(5)).
 *
 * mountinfo:  "36 35 98:0 /root /point options [optional fields] - type source super-options", blanks and backslashes
 *             in names as \ooo. The number in front is the one that fdinfo calls mnt_id.
 * mountstats: "device SOURCE mounted on POINT with fstype TYPE ...", and for NFS lines that begin with a blank: "opts:"
 *             and "nfsv4:" with settings between commas, then operations "LAYOUTGET: 12 12 ...".
 */
#include "mpiox_layout_mounts.h"

#include <string.h>

#include "mpiox_layout_span.h"

int64_t mpiox_layout_parse_fdinfo(const void *text, int64_t text_bytes)
{
    mpiox_span rest = mpiox_span_of(text, text_bytes);
    while (rest.bytes > 0) {
        mpiox_span line = mpiox_span_cut(&rest, '\n');
        int64_t number;
        if (mpiox_span_skip(&line, "mnt_id:") && mpiox_span_number(mpiox_span_trim(line), &number))
            return number;
    }
    return -1;
}

static int parse_mount(mpiox_span line, mpiox_layout_mount *out)
{
    mpiox_span point = {NULL, 0};
    for (int i = 0; i < 4; i++) /* parent, device, root, point */
        point = mpiox_span_word(&line);
    for (;;) { /* options, and optional fields up to a dash */
        mpiox_span word = mpiox_span_word(&line);
        if (word.bytes == 0)
            return MPIOX_E_ARG;
        if (mpiox_span_is(word, "-"))
            break;
    }
    mpiox_span type = mpiox_span_word(&line), source = mpiox_span_word(&line), options = mpiox_span_word(&line);
    mpiox_span_copy(point, true, out->point, (int64_t)sizeof out->point);
    mpiox_span_copy(type, true, out->type, (int64_t)sizeof out->type);
    if (out->point[0] == '\0' || out->type[0] == '\0')
        return MPIOX_E_ARG;
    mpiox_span_copy(source, true, out->source, (int64_t)sizeof out->source);
    mpiox_span_copy(options, true, out->options, (int64_t)sizeof out->options);
    return MPIOX_OK;
}

int mpiox_layout_parse_mountinfo(const void *text, int64_t text_bytes, int64_t mount, mpiox_layout_mount *out)
{
    mpiox_span rest = mpiox_span_of(text, text_bytes);
    while (rest.bytes > 0) {
        mpiox_span line = mpiox_span_cut(&rest, '\n');
        int64_t number;
        if (mpiox_span_number(mpiox_span_word(&line), &number) && number == mount)
            return parse_mount(line, out);
    }
    return MPIOX_E_ARG;
}

static void parse_setting(mpiox_span word, mpiox_layout_nfs *out)
{
    if (mpiox_span_skip(&word, "vers="))
        mpiox_span_copy(word, false, out->version, (int64_t)sizeof out->version);
    else if (mpiox_span_skip(&word, "rsize="))
        mpiox_span_number(word, &out->read_bytes);
    else if (mpiox_span_skip(&word, "wsize="))
        mpiox_span_number(word, &out->write_bytes);
    else if (mpiox_span_skip(&word, "pnfs=") && !mpiox_span_is(word, "not configured"))
        mpiox_span_copy(word, false, out->pnfs, (int64_t)sizeof out->pnfs);
}

/* Lines of one mount: settings of its options and of its caps, until the next mount. */
static void parse_nfs(mpiox_span rest, mpiox_layout_nfs *out)
{
    while (rest.bytes > 0) {
        mpiox_span line = mpiox_span_trim(mpiox_span_cut(&rest, '\n'));
        if (mpiox_span_skip(&line, "device "))
            return;
        if (mpiox_span_skip(&line, "LAYOUTGET:")) {
            mpiox_span_number(mpiox_span_word(&line), &out->layouts_got);
            continue;
        }
        if (mpiox_span_skip(&line, "GETDEVICEINFO:")) {
            mpiox_span_number(mpiox_span_word(&line), &out->devices_got);
            continue;
        }
        if (!mpiox_span_skip(&line, "opts:") && !mpiox_span_skip(&line, "nfsv4:") && !mpiox_span_skip(&line, "caps:"))
            continue;
        while (line.bytes > 0)
            parse_setting(mpiox_span_trim(mpiox_span_cut(&line, ',')), out);
    }
}

int mpiox_layout_parse_mountstats(const void *text, int64_t text_bytes, const char *point, mpiox_layout_nfs *out)
{
    mpiox_span rest = mpiox_span_of(text, text_bytes);
    int rc = MPIOX_E_ARG;
    while (rest.bytes > 0) {
        mpiox_span line = mpiox_span_cut(&rest, '\n');
        if (!mpiox_span_skip(&line, "device "))
            continue;
        int64_t on = mpiox_span_find(line, " mounted on ");
        if (on < 0)
            continue;
        mpiox_span place = {line.at + on, line.bytes - on};
        char found[sizeof((mpiox_layout_mount){0}.point)];
        mpiox_span_skip(&place, " mounted on ");
        mpiox_span_copy(mpiox_span_word(&place), true, found, (int64_t)sizeof found);
        if (strcmp(found, point) != 0 || !mpiox_span_skip(&place, " with fstype nfs"))
            continue;
        *out = (mpiox_layout_nfs){.layouts_got = -1, .devices_got = -1};
        parse_nfs(rest, out);
        rc = MPIOX_OK;
    }
    return rc;
}
