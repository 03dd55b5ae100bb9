/* mpiox_rawtrace_text.c - see mpiox_rawtrace_text.h. */
#include "mpiox_rawtrace_text.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "mpiox_error.h"

#define SECOND_NS INT64_C(1000000000)
#define DAY_NS (86400 * SECOND_NS)

/* Seconds below this since the first line are not those since 1970. */
#define FIRST_EPOCH_NS (100000000 * SECOND_NS)
/* A number without dot before a name: a process below, a time above. */
#define FIRST_EPOCH_S 1000000000

/* ---- threads --------------------------------------------------------------------------------------------------- */

static int grow_threads(mpiox_rawtrace_text *text)
{
    const int32_t capacity = 2 * text->thread_capacity + 8;
    mpiox_rawtrace_thread *threads = realloc(text->threads, (size_t)capacity * sizeof *threads);

    if (threads == NULL)
        return MPIOX_E_NOMEM;
    text->threads = threads;
    text->thread_capacity = capacity;
    return MPIOX_OK;
}

static int32_t first_place(const mpiox_rawtrace_text *text, int64_t id)
{
    return (int32_t)((uint64_t)id * UINT64_C(0x9e3779b97f4a7c15) >> 40) & (text->place_count - 1);
}

/* The thread that makes another one now, which shows for the first time; NULL: none does. */
static const mpiox_rawtrace_thread *maker_of(const mpiox_rawtrace_text *text)
{
    for (int32_t i = 0; i < text->thread_count; i++) {
        const mpiox_rawtrace_thread *thread = &text->threads[i];
        if (thread->count > 0 && thread->stack[thread->count - 1].makes)
            return thread;
    }
    return NULL;
}

/* The working folder of a thread, which may be that of another one. */
static int32_t *folder_of(mpiox_rawtrace_text *text, mpiox_rawtrace_thread *thread)
{
    return thread->shared > 0 ? &text->threads[thread->shared - 1].folder : &thread->folder;
}

static int grow_places(mpiox_rawtrace_text *text)
{
    const int32_t count = text->place_count > 0 ? 2 * text->place_count : 16;
    int32_t *places = calloc((size_t)count, sizeof *places);

    if (places == NULL)
        return MPIOX_E_NOMEM;
    free(text->places);
    text->places = places;
    text->place_count = count;
    for (int32_t i = 0; i < text->thread_count; i++) {
        int32_t place = first_place(text, text->threads[i].id);
        while (places[place] != 0)
            place = (place + 1) & (count - 1);
        places[place] = i + 1;
    }
    return MPIOX_OK;
}

/* The thread of an id, which is made when it is new; NULL: memory is exhausted. */
static mpiox_rawtrace_thread *thread_of(mpiox_rawtrace_text *text, int64_t id)
{
    if (2 * (text->thread_count + 1) > text->place_count && grow_places(text) != MPIOX_OK)
        return NULL;
    int32_t place = first_place(text, id);
    for (; text->places[place] != 0; place = (place + 1) & (text->place_count - 1)) {
        if (text->threads[text->places[place] - 1].id == id)
            return &text->threads[text->places[place] - 1];
    }
    if (text->thread_count == text->thread_capacity && grow_threads(text) != MPIOX_OK)
        return NULL;
    const mpiox_rawtrace_thread *maker = maker_of(text);
    mpiox_rawtrace_thread *made = &text->threads[text->thread_count];
    *made = (mpiox_rawtrace_thread){.id = id};
    if (maker != NULL) {
        made->mpi = maker->mpi;
        made->folder = maker->shared > 0 ? text->threads[maker->shared - 1].folder : maker->folder;
    }
    text->places[place] = ++text->thread_count;
    return &text->threads[text->thread_count - 1];
}

static void pop(mpiox_rawtrace_thread *thread)
{
    mpiox_rawtrace_pending *top = &thread->stack[--thread->count];

    thread->mpi -= top->is_mpi;
    free(top->arguments);
}

/* Complete the topmost call of a thread, of which no end came, with what is known. */
static int give_up(mpiox_rawtrace_text *text, mpiox_rawtrace_thread *thread, mpiox_rawtrace_calls *calls,
                   mpiox_rawtrace_rows *rows)
{
    const mpiox_rawtrace_pending *top = &thread->stack[thread->count - 1];
    mpiox_rawtrace_held *held = mpiox_rawtrace_rows_get(rows, top->number);
    const mpiox_rawtrace_function *function = mpiox_rawtrace_calls_find(calls, &rows->operations, top->name,
                                                                        top->name_bytes);
    int code = held != NULL && function != NULL ? MPIOX_OK : MPIOX_E_NOMEM;

    if (code == MPIOX_OK) {
        calls->extra.used = 0;
        calls->folder = *folder_of(text, thread);
        code = mpiox_rawtrace_calls_fill(calls, function, &rows->files, &held->row, top->arguments,
                                         top->arguments + top->argument_bytes);
        mpiox_rawtrace_json_key(&calls->extra, "unfinished", 10);
        mpiox_rawtrace_buffer_put(&calls->extra, "true", 4);
        char *extra = mpiox_rawtrace_json_end(&calls->extra);
        if (calls->extra.failed)
            code = MPIOX_E_NOMEM;
        (void)mpiox_rawtrace_rows_done(rows, top->number, extra);
    }
    pop(thread);
    return code;
}

int mpiox_rawtrace_text_end(mpiox_rawtrace_text *text, mpiox_rawtrace_calls *calls, mpiox_rawtrace_rows *rows)
{
    int code = MPIOX_OK;

    for (int32_t i = 0; i < text->thread_count; i++) {
        while (text->threads[i].count > 0) {
            const int one = give_up(text, &text->threads[i], calls, rows);
            code = one != MPIOX_OK ? one : code;
        }
    }
    mpiox_rawtrace_text_free(text);
    return code;
}

void mpiox_rawtrace_text_free(mpiox_rawtrace_text *text)
{
    for (int32_t i = 0; i < text->thread_count; i++) {
        while (text->threads[i].count > 0)
            pop(&text->threads[i]);
        free(text->threads[i].stack);
    }
    free(text->threads);
    free(text->places);
    memset(text, 0, sizeof *text);
}

/* ---- the head of a line ---------------------------------------------------------------------------------------- */

static inline bool is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

/* Digits at p, at most 18 of them; NULL when there are none. */
static const char *digits(const char *p, const char *end, int64_t *value)
{
    const char *start = p;

    *value = 0;
    for (; p < end && is_digit(*p); p++) {
        if (p - start == 18)
            return NULL;
        *value = 10 * *value + (*p - '0');
    }
    return p > start ? p : NULL;
}

/* The decimals behind a dot at p, as ns. */
static const char *fraction(const char *p, const char *end, int64_t *ns)
{
    int64_t unit = SECOND_NS / 10;

    *ns = 0;
    for (p++; p < end && is_digit(*p); p++, unit /= 10)
        *ns += unit * (*p - '0');
    return p;
}

/* The :MM:SS[.fraction] behind hours. */
static const char *clock_time(const char *p, const char *end, int64_t hours, int64_t *ns)
{
    int64_t minutes, seconds, rest = 0;

    p = digits(p + 1, end, &minutes);
    if (p == NULL || p == end || *p != ':')
        return NULL;
    p = digits(p + 1, end, &seconds);
    if (p == NULL || hours > 24 || minutes > 59 || seconds > 60)
        return NULL;
    if (p < end && *p == '.')
        p = fraction(p, end, &rest);
    *ns = ((hours * 60 + minutes) * 60 + seconds) * SECOND_NS + rest;
    return p;
}

/* Convert a line's time to the time since the origin of the trace. */
static bool place_time(mpiox_rawtrace_text *text, int form, int64_t ns, int64_t *timestamp)
{
    if (text->time_form == MPIOX_RAWTRACE_TIME_UNKNOWN)
        text->time_form = form != MPIOX_RAWTRACE_TIME_EPOCH || ns >= FIRST_EPOCH_NS ? form : MPIOX_RAWTRACE_TIME_DELTA;
    switch (text->time_form) {
    case MPIOX_RAWTRACE_TIME_DAY:
        if (form != text->time_form)
            return false;
        if (ns < text->last_ns - DAY_NS / 2) /* midnight */
            text->day_ns += DAY_NS;
        else if (ns > text->last_ns + DAY_NS / 2 && text->day_ns > 0) /* a line from before it, printed late */
            text->day_ns -= DAY_NS;
        text->last_ns = ns;
        *timestamp = text->day_ns + ns;
        return true;
    case MPIOX_RAWTRACE_TIME_EPOCH:
        *timestamp = ns;
        return form == text->time_form;
    default:
        if (form != MPIOX_RAWTRACE_TIME_EPOCH || __builtin_add_overflow(text->last_ns, ns, &text->last_ns))
            return false;
        *timestamp = text->last_ns;
        return true;
    }
}

typedef struct head {
    int64_t thread, timestamp;
    bool has_time;
} head;

/* Thread and time at the beginning of a line; returns the call behind them, NULL when they make no sense. */
static const char *parse_head(mpiox_rawtrace_text *text, const char *p, const char *end, head *head)
{
    bool has_thread = false;

    *head = (struct head){0, 0, false};
    p = mpiox_rawtrace_skip_blanks(p, end);
    if (end - p > 5 && memcmp(p, "[pid", 4) == 0) {
        p = digits(mpiox_rawtrace_skip_blanks(p + 4, end), end, &head->thread);
        if (p == NULL || p == end || *p != ']')
            return NULL;
        has_thread = true;
        p = mpiox_rawtrace_skip_blanks(p + 1, end);
    }
    while (!head->has_time && p < end && is_digit(*p)) {
        int64_t number, ns = 0;
        const char *q = digits(p, end, &number);
        if (q == NULL || q == end)
            return NULL;
        int form = MPIOX_RAWTRACE_TIME_EPOCH;
        if (*q == ':') {
            form = MPIOX_RAWTRACE_TIME_DAY;
            q = clock_time(q, end, number, &ns);
        } else if (*q == '.') {
            q = fraction(q, end, &ns);
            if (number > INT64_MAX / SECOND_NS - 1)
                return NULL;
            ns += number * SECOND_NS;
        } else if (!has_thread && number < FIRST_EPOCH_S) {
            has_thread = true;
            head->thread = number;
            p = mpiox_rawtrace_skip_blanks(q, end);
            continue;
        } else {
            if (number > INT64_MAX / SECOND_NS)
                return NULL;
            ns = number * SECOND_NS;
        }
        if (q == NULL || !place_time(text, form, ns, &head->timestamp))
            return NULL;
        head->has_time = true;
        p = mpiox_rawtrace_skip_blanks(q, end);
    }
    return p;
}

/* ---- the call -------------------------------------------------------------------------------------------------- */

/* The parts of a line. `bracket`: the call continues (unfinished) or never returns. */
typedef struct call {
    const char *name, *arguments, *arguments_end, *tail;
    int64_t name_bytes;
    bool unfinished, no_return;
    int depth;   /* brackets that are open where it is cut */
    bool ragged; /* the end of an argument is unknown */
} call;

static bool has(const char *p, const char *end, const char *text)
{
    return end - p >= (int64_t)strlen(text) && memcmp(p, text, strlen(text)) == 0;
}

/* Find the end of arguments that go on at p, inside of `depth` brackets: a closing bracket or a mark. */
static bool find_end(const char *p, const char *end, int depth, call *call)
{
    const char *start = p;

    call->arguments = p;
    while (p != NULL && p < end) {
        if (mpiox_rawtrace_is_plain(*p)) {
            p++;
            continue;
        }
        const bool unfinished = *p == '<' && has(p, end, "<unfinished ...>");
        const bool no_return = *p == '<' && (has(p, end, "<no return ...>") || has(p, end, "<detached ...>"));
        if (unfinished || no_return || (*p == ')' && depth == 0)) {
            call->unfinished = unfinished;
            call->depth = depth;
            call->no_return = no_return;
            call->arguments_end = p;
            call->tail = unfinished || no_return ? end : p + 1;
            /* strace, of a thread that ends: "<unfinished ...>) = ?" */
            if (unfinished && has(p, end, "<unfinished ...>)"))
                call->tail = p + sizeof "<unfinished ...>)" - 1;
            return true;
        }
        depth += (*p == '(' || *p == '[' || *p == '{') - (*p == ')' || *p == ']' || *p == '}');
        p = mpiox_rawtrace_skip_part(start, p, end);
    }
    return false;
}

/* The same by the last ") =": ltrace writes quotes inside of strings as they are, so that one may seem to be open. */
static bool find_last_end(const char *p, const char *end, call *call)
{
    for (const char *q = end - 1; q > p; q--) {
        const char *behind = *q == ')' ? mpiox_rawtrace_skip_blanks(q + 1, end) : end;
        if (behind < end && *behind == '=') {
            call->arguments_end = q;
            call->tail = q + 1;
            call->ragged = true;
            return true;
        }
    }
    return false;
}

/* [PROG->]NAME( at p; NULL: there is no call. */
static const char *find_name(const char *p, const char *end, call *call)
{
    const char *open = memchr(p, '(', (size_t)(end - p)), *name = p;

    if (open == NULL)
        return "no call";
    for (const char *q = open - 1; q > p; q--) {
        if (q[0] == '>' && q[-1] == '-') {
            name = q + 1;
            break;
        }
    }
    if (name == open)
        return "no name of a call";
    for (const char *q = name; q < open; q++) {
        if (!isalnum((unsigned char)*q) && *q != '_' && *q != '@' && *q != '.')
            return "no name of a call";
    }
    call->name = name;
    call->name_bytes = open - name;
    return find_end(open + 1, end, 0, call) || find_last_end(open + 1, end, call) ? NULL : "the call has no end";
}

/* <SECONDS> at the end of a line; moves the end before it. */
static bool take_duration(const char *p, const char **end, int64_t *duration)
{
    const char *q = *end;
    int64_t seconds, ns = 0;

    while (q > p && q[-1] == ' ')
        q--;
    if (q == p || q[-1] != '>')
        return false;
    const char *close = --q;
    while (q > p && (is_digit(q[-1]) || q[-1] == '.'))
        q--;
    if (q == p || q[-1] != '<' || q == close)
        return false;
    const char *behind = digits(q, close, &seconds);
    if (behind != NULL && behind < close)
        behind = fraction(behind, close, &ns);
    if (behind != close || seconds > INT64_MAX / SECOND_NS - 1)
        return false;
    *duration = seconds * SECOND_NS + ns;
    *end = q - 1;
    return true;
}

/* "ENOENT" of "-1 ENOENT (No such file...)"; false: there is none. */
static bool set_errno(mpiox_rawtrace_calls *calls, const char *p, const char *end)
{
    const char *q = p;

    while (q < end && (isupper((unsigned char)*q) || is_digit(*q) || *q == '_'))
        q++;
    if (q - p < 2 || *p != 'E')
        return false;
    mpiox_rawtrace_json_key(&calls->extra, "errno", 5);
    mpiox_rawtrace_json_string(&calls->extra, p, q - p);
    return true;
}

/* "ENOENT" of a number; NULL: unknown, also where glibc is older than 2.32, which a wheel must start on. */
static const char *errno_name(int number)
{
#ifdef MPIOX_ANY_MPI
    const char *(*name)(int);

    *(void **)&name = dlsym(RTLD_DEFAULT, "strerrorname_np");
    return name != NULL ? name(number) : NULL;
#else
    return strerrorname_np(number);
#endif
}

/* = RESULT ... <SECONDS>. Returns what is wrong with it, or NULL. */
static const char *parse_result(mpiox_rawtrace_calls *calls, mpiox_rawtrace_names *files,
                                const mpiox_rawtrace_function *function, mpiox_rawtrace_row *row, const char *p,
                                const char *end)
{
    p = mpiox_rawtrace_skip_blanks(p, end);
    if (p == end || *p != '=')
        return "the call has no result";
    p = mpiox_rawtrace_skip_blanks(p + 1, end);
    const bool timed = take_duration(p, &end, &row->duration);
    if (p == end)
        return timed ? NULL : "the call has no result"; /* ltrace, of some that are restarted */
    const char *q = p;
    while (q < end && *q != ' ' && *q != '<' && *q != '\t')
        q++;
    int64_t value;
    const char *close = q < end && *q == '<' ? memchr(q, '>', (size_t)(end - q)) : NULL;
    if (function->returns_handle && row->file >= 0 && close != NULL && q[1] == '/' && /* strace -y: 3</whole/name> */
        mpiox_rawtrace_calls_opened(calls, files, row, q + 1, close) != MPIOX_OK)
        calls->extra.failed = true;
    if (mpiox_rawtrace_number(p, q, &value)) {
        row->result = value;
    } else if (*p == '"' || (*p != '?' && *p != '<')) { /* a text, an address by name, "nil" */
        const char *stop = end;
        while (stop > p && stop[-1] == ' ')
            stop--;
        mpiox_rawtrace_calls_extra(calls, "result", p, stop);
        return NULL;
    }
    if (function->raw && row->result < 0 && row->result >= -4095) {
        const char *name = errno_name((int)-row->result);
        row->result = -1;
        if (name != NULL)
            (void)set_errno(calls, name, name + strlen(name));
    } else if ((row->result == -1 || *p == '?') && set_errno(calls, mpiox_rawtrace_skip_blanks(q, end), end)) {
        row->result = -1; /* "? ERESTARTSYS": a signal has interrupted it before it did anything */
    }
    if (function->returns_handle && row->result != MPIOX_RAWTRACE_NULL && row->result != -1)
        row->handle = row->result;
    return NULL;
}

/* Complete row `number` of a call with these arguments and the text of its result, which goes to *result; calls->folder
 * is the working folder before and after it. */
static int complete(mpiox_rawtrace_calls *calls, mpiox_rawtrace_rows *rows, int64_t number,
                    const mpiox_rawtrace_function *function, mpiox_rawtrace_span arguments, mpiox_rawtrace_span tail,
                    int64_t *result)
{
    mpiox_rawtrace_held *held = mpiox_rawtrace_rows_get(rows, number);

    if (held == NULL || function == NULL)
        return MPIOX_E_NOMEM;
    calls->extra.used = 0;
    const int code = mpiox_rawtrace_calls_fill(calls, function, &rows->files, &held->row, arguments.start,
                                               arguments.end);
    if (tail.start != NULL) {
        const char *why = parse_result(calls, &rows->files, function, &held->row, tail.start, tail.end);
        if (why != NULL)
            mpiox_rawtrace_rows_remark(rows, why, tail.start, tail.end - tail.start);
    }
    *result = held->row.result;
    if (function->moves && *result == 0 && held->row.file >= 0)
        calls->folder = held->row.file + 1;
    char *extra = mpiox_rawtrace_json_end(&calls->extra);
    (void)mpiox_rawtrace_rows_done(rows, number, extra);
    return calls->extra.failed ? MPIOX_E_NOMEM : code;
}

/* A new thread or process works for the MPI call that its maker is in, and begins in its folder. arguments: of the call
 * that made it, `depth` MPI calls deep. */
static int inherit(mpiox_rawtrace_text *text, int32_t maker, mpiox_rawtrace_span arguments, int32_t depth,
                   int64_t child)
{
    static const char shares[] = "CLONE_FS";

    if (child <= 0)
        return MPIOX_OK;
    mpiox_rawtrace_thread *thread = thread_of(text, child);
    if (thread == NULL)
        return MPIOX_E_NOMEM;
    if (depth > 0 && thread->mpi == 0 && thread->count == 0)
        thread->mpi = depth;
    const size_t bytes = (size_t)(arguments.end - arguments.start);
    if (memmem(arguments.start, bytes, shares, sizeof shares - 1) != NULL && thread != &text->threads[maker])
        thread->shared = text->threads[maker].shared > 0 ? text->threads[maker].shared : maker + 1;
    else if (thread->folder == 0)
        thread->folder = *folder_of(text, &text->threads[maker]);
    return MPIOX_OK;
}

static int push_pending(mpiox_rawtrace_thread *thread, const call *call, int64_t number,
                        const mpiox_rawtrace_function *function)
{
    const bool is_mpi = function->layer == MPIOX_LAYER_MPIIO || function->layer == MPIOX_LAYER_MPI;

    if (thread->count == thread->capacity) {
        const int32_t capacity = 2 * thread->capacity + 4;
        mpiox_rawtrace_pending *stack = realloc(thread->stack, (size_t)capacity * sizeof *stack);
        if (stack == NULL)
            return MPIOX_E_NOMEM;
        thread->stack = stack;
        thread->capacity = capacity;
    }
    const int64_t bytes = call->arguments_end - call->arguments;
    mpiox_rawtrace_pending *top = &thread->stack[thread->count];
    *top = (mpiox_rawtrace_pending){
        .number = number, .argument_bytes = bytes, .depth = call->depth, .is_mpi = is_mpi, .makes = function->makes};
    /* Name and arguments in one piece of memory. */
    top->arguments = malloc((size_t)(bytes + call->name_bytes) + 1);
    if (top->arguments == NULL)
        return MPIOX_E_NOMEM;
    memcpy(top->arguments, call->arguments, (size_t)bytes);
    memcpy(top->arguments + bytes, call->name, (size_t)call->name_bytes);
    top->name = top->arguments + bytes;
    top->name_bytes = call->name_bytes;
    thread->count++;
    thread->mpi += is_mpi;
    return MPIOX_OK;
}

/* A line with the beginning of a call, or all of it. */
static int begin_call(mpiox_rawtrace_text *text, mpiox_rawtrace_calls *calls, mpiox_rawtrace_rows *rows,
                      const head *head, const call *call, const char *end)
{
    const mpiox_rawtrace_function *function = mpiox_rawtrace_calls_find(calls, &rows->operations, call->name,
                                                                        call->name_bytes);
    mpiox_rawtrace_thread *thread = thread_of(text, head->thread);
    const int64_t number = function != NULL && thread != NULL ? mpiox_rawtrace_rows_push(rows) : MPIOX_E_NOMEM;

    if (number < 0)
        return MPIOX_E_NOMEM;
    mpiox_rawtrace_row *row = &mpiox_rawtrace_rows_get(rows, number)->row;
    row->timestamp = head->timestamp;
    row->thread = head->thread;
    row->process = 0;
    row->operation = function->operation;
    row->layer = function->layer;
    row->depth = thread->mpi;
    const mpiox_rawtrace_span arguments = {call->arguments, call->arguments_end};
    mpiox_rawtrace_function ragged = *function;
    ragged.words = -1; /* the arguments stay together */
    if (!call->unfinished || call->tail < end) {
        int64_t result = MPIOX_RAWTRACE_NULL;
        calls->folder = *folder_of(text, thread);
        const int done = complete(calls, rows, number, call->ragged ? &ragged : function, arguments,
                                  (mpiox_rawtrace_span){call->no_return ? NULL : call->tail, end}, &result);
        *folder_of(text, thread) = calls->folder;
        return done == MPIOX_OK && function->makes
                   ? inherit(text, (int32_t)(thread - text->threads), arguments, thread->mpi, result)
                   : done;
    }
    const int code = push_pending(thread, call, number, function);
    if (code != MPIOX_OK)
        (void)mpiox_rawtrace_rows_done(rows, number, NULL);
    return code;
}

static bool same_name(const mpiox_rawtrace_pending *pending, const char *name, int64_t bytes)
{
    return pending->name_bytes == bytes && memcmp(pending->name, name, (size_t)bytes) == 0;
}

/* Complete the topmost call of a thread by the rest of its line. */
static int join(mpiox_rawtrace_text *text, mpiox_rawtrace_thread *thread, mpiox_rawtrace_calls *calls,
                mpiox_rawtrace_rows *rows, const call *rest, const char *end)
{
    mpiox_rawtrace_pending *top = &thread->stack[thread->count - 1];
    mpiox_rawtrace_buffer whole = {0};
    int64_t result = MPIOX_RAWTRACE_NULL;
    const mpiox_rawtrace_function *function = mpiox_rawtrace_calls_find(calls, &rows->operations, top->name,
                                                                        top->name_bytes);

    mpiox_rawtrace_buffer_put(&whole, top->arguments, top->argument_bytes);
    mpiox_rawtrace_buffer_put(&whole, rest->arguments, rest->arguments_end - rest->arguments);
    int code = whole.failed ? MPIOX_E_NOMEM : MPIOX_OK;
    const mpiox_rawtrace_span arguments = {whole.bytes, whole.bytes + whole.used};
    calls->folder = *folder_of(text, thread);
    if (code == MPIOX_OK)
        code = complete(calls, rows, top->number, function, arguments,
                        (mpiox_rawtrace_span){rest->no_return ? NULL : rest->tail, end}, &result);
    *folder_of(text, thread) = calls->folder;
    const bool makes = top->makes;
    pop(thread);
    if (code == MPIOX_OK && makes)
        code = inherit(text, (int32_t)(thread - text->threads), arguments, thread->mpi, result);
    free(whole.bytes);
    return code;
}

static bool is_fork(const char *name, int64_t bytes)
{
    return memmem(name, (size_t)bytes, "fork", 4) != NULL || memmem(name, (size_t)bytes, "clone", 5) != NULL ||
           (bytes == 7 && memcmp(name, "SYS_435", 7) == 0); /* clone3 */
}

/* <... NAME resumed> REST */
static int end_call(mpiox_rawtrace_text *text, mpiox_rawtrace_calls *calls, mpiox_rawtrace_rows *rows, const head *head,
                    const char *p, const char *end)
{
    const char *name = mpiox_rawtrace_skip_blanks(p + 4, end), *q = name;
    call rest = {0};
    mpiox_rawtrace_thread *thread = thread_of(text, head->thread);

    if (thread == NULL)
        return MPIOX_E_NOMEM;
    while (q < end && *q != ' ' && *q != '>')
        q++;
    const int64_t bytes = q - name;
    int32_t found = thread->count - 1;
    while (found >= 0 && !same_name(&thread->stack[found], name, bytes))
        found--;
    if (found < 0 && is_fork(name, bytes)) { /* ltrace: it returns in the child, too */
        rows->events++;
        return MPIOX_OK;
    }
    if (found < 0) {
        mpiox_rawtrace_rows_problem(rows, "the end of a call without its beginning", p, end - p);
        return MPIOX_OK;
    }
    q = mpiox_rawtrace_skip_blanks(q, end);
    if (!has(q, end, "resumed>") || !find_end(q + 8, end, thread->stack[found].depth, &rest) || rest.unfinished) {
        mpiox_rawtrace_rows_problem(rows, "cannot be parsed: the end of a call is cut", p, end - p);
        return MPIOX_OK;
    }
    while (thread->count - 1 > found) {
        const int code = give_up(text, thread, calls, rows);
        if (code != MPIOX_OK)
            return code;
    }
    return join(text, thread, calls, rows, &rest, end);
}

/* Lines that are no calls; +++ ends the thread. */
static bool is_event(const char *p, const char *end)
{
    return has(p, end, "+++ ") || has(p, end, "--- ") || has(p, end, "strace: ") || has(p, end, "Process ");
}

int mpiox_rawtrace_text_line(mpiox_rawtrace_text *text, mpiox_rawtrace_calls *calls, mpiox_rawtrace_rows *rows,
                             const char *p, const char *end)
{
    const char *line = p;
    head head;
    call call = {0};

    while (end > p && (end[-1] == '\r' || end[-1] == ' '))
        end--;
    if (p == end) {
        rows->events++;
        return MPIOX_OK;
    }
    if (text->has_zeros && memchr(p, '\0', (size_t)(end - p)) != NULL) {
        mpiox_rawtrace_rows_problem(rows, "cannot be parsed: binary", line, end - line);
        return MPIOX_OK;
    }
    p = parse_head(text, p, end, &head);
    const char *why = p == NULL ? "cannot be parsed: thread or time" : NULL;
    if (why == NULL && is_event(p, end)) {
        rows->events++;
        return MPIOX_OK;
    }
    if (why == NULL && !head.has_time)
        why = "no time: capture with -tt or -ttt";
    if (why == NULL && has(p, end, "<... "))
        return end_call(text, calls, rows, &head, p, end);
    if (why == NULL)
        why = p < end ? find_name(p, end, &call) : "no call";
    if (why != NULL) {
        mpiox_rawtrace_rows_problem(rows, why, line, end - line);
        return MPIOX_OK;
    }
    return begin_call(text, calls, rows, &head, &call, end);
}
