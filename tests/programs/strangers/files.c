/*
 * files.c - opening, naming, communicators, handles; and what happens to a file behind the back of who has it open.
 */
#include "strangers.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 96, TURNS = 50 };

/* Each rank of the file writes in turns and closes it; the file is checked by all. */
static void write_and_close(MPI_File *file, MPI_Comm comm, int seed)
{
    int place, in_turn;
    MPI_Datatype view;

    MPI_Comm_rank(comm, &place);
    MPI_Comm_size(comm, &in_turn);
    view = turns_type(BLOCK, in_turn);
    FINE(MPI_File_set_view(*file, (MPI_Offset)place * BLOCK, MPI_BYTE, view, "native", MPI_INFO_NULL));
    MPI_Type_free(&view);
    write_turns(*file, BLOCK, TURNS, place, in_turn, seed);
    FINE(MPI_File_close(file));
}

/* ---- communicators ----------------------------------------------------------------------------------------------- */

/* The communicator, the group and the info object go as soon as the file is open. */
static void freed_early(void)
{
    char path[PATH_BYTES];
    MPI_Comm comm;
    MPI_Group group;
    MPI_Info info, used;
    MPI_File file;

    start_anew(path_of("file", path));
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Info_create(&info);
    MPI_Info_set(info, "cb_buffer_size", "65536");
    MPI_Info_set(info, "a stranger's own hint", "kept to itself");
    FINE(MPI_File_open(comm, path, AMODE_NEW, info, &file));
    MPI_Info_free(&info);
    MPI_Comm_free(&comm);
    FINE(MPI_File_get_info(file, &used));
    MPI_Info_free(&used);
    FINE(MPI_File_get_group(file, &group));
    MPI_Group_free(&group);
    write_and_close(&file, MPI_COMM_WORLD, 1);
    expect_file(path, (long long)BLOCK * TURNS * ranks, 1);
}

static void use_comm(MPI_Comm comm, const char *path, int seed)
{
    MPI_File file = open_file(comm, path, AMODE_NEW);

    MPI_Comm_free(&comm);
    write_and_close(&file, MPI_COMM_WORLD, seed);
    expect_file(path, (long long)BLOCK * TURNS * ranks, seed);
}

/* With a topology, by a group, and merged from two sides. */
static void derived_comms(void)
{
    char path[PATH_BYTES];
    const int low = rank < ranks / 2, size = ranks, ring = 1;
    MPI_Comm comm, half, between;
    MPI_Group group;

    start_anew(path_of("file", path));
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &ring, 0, &comm);
    use_comm(comm, path, 2);
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    MPI_Comm_create_group(MPI_COMM_WORLD, group, 5, &comm);
    MPI_Group_free(&group);
    use_comm(comm, path, 3);
    if (ranks < 2)
        return;
    MPI_Comm_split(MPI_COMM_WORLD, low, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, low ? ranks / 2 : 0, 6, &between);
    MPI_Intercomm_merge(between, !low, &comm);
    MPI_Comm_free(&between);
    MPI_Comm_free(&half);
    use_comm(comm, path, 4);
}

/* A program that makes a new communicator for each step (the ranks that have something to write, in an order of their
 * own), opens a file on it, and frees both: what the library keeps of each must have a limit. */
static void orders(void)
{
    enum { STEPS = 70, KEPT = 70 };
    char path[PATH_BYTES];
    unsigned random = 12345;
    const long before = shared_mappings();

    start_anew(path_of("file", path));
    for (int step = 0; step < STEPS; step++) {
        int place = rank;
        MPI_Comm comm;
        MPI_File file;

        for (int i = ranks - 1; i > 0; i--) { /* one of all orders, the same on every rank: where this rank gets to */
            const int with = (int)((random = random * 1664525u + 1013904223u) >> 16) % (i + 1);

            place = place == i ? with : place == with ? i : place;
        }
        MPI_Comm_split(MPI_COMM_WORLD, step % 7 == 3 && rank == 0 ? 1 : 0, place, &comm);
        file = open_file(comm, path_of(step % 7 == 3 && rank == 0 ? "alone" : "file", path), AMODE_NEW);
        write_and_close(&file, comm, step);
        MPI_Comm_free(&comm);
    }
    if (shared_mappings() - before > KEPT)
        differs("%ld shared memories are kept after %d files", shared_mappings() - before, STEPS);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        EXPECT(file_holds(path_of("file", path), 0, (long long)BLOCK * TURNS * ranks, STEPS - 1));
}

/* Every rank opens the same file for itself, while it is open for all, and everybody writes. */
static void each_for_itself(void)
{
    char path[PATH_BYTES];
    unsigned char buffer[BLOCK * TURNS];
    MPI_File all, own;

    start_anew(path_of("file", path));
    all = open_file(MPI_COMM_WORLD, path, AMODE_NEW);
    own = open_file(MPI_COMM_SELF, path, MPI_MODE_RDWR);
    write_turns(all, BLOCK, TURNS, 0, 1, 5); /* the same bytes by everybody */
    for (int i = 0; i < TURNS; i++) {
        const MPI_Offset at = (MPI_Offset)(TURNS + i * ranks + rank) * BLOCK;

        fill_from(buffer, at, BLOCK, 5);
        FINE(MPI_File_write_at_all(own, at, buffer, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE));
    }
    FINE(MPI_File_sync(own));
    MPI_Barrier(MPI_COMM_WORLD);
    FINE(MPI_File_sync(all));
    FINE(MPI_File_read_at_all(all, (MPI_Offset)TURNS * BLOCK, buffer, BLOCK * TURNS, MPI_BYTE, MPI_STATUS_IGNORE));
    for (int i = 0; i < BLOCK * TURNS; i++)
        EXPECT(buffer[i] == byte_at(TURNS * BLOCK + i, 5));
    FINE(MPI_File_close(&own));
    FINE(MPI_File_close(&all));
    expect_file(path, (long long)BLOCK * TURNS * (ranks + 1), 5);
}

/* One file by two handles with views that complete each other; closed in the order of opening. */
static void twice(void)
{
    char path[PATH_BYTES];
    MPI_Datatype view = turns_type(BLOCK, 2 * ranks);
    MPI_File files[2];

    start_anew(path_of("file", path));
    for (int f = 0; f < 2; f++) {
        files[f] = open_file(MPI_COMM_WORLD, path, AMODE_NEW);
        FINE(MPI_File_set_view(files[f], (MPI_Offset)(2 * rank + f) * BLOCK, MPI_BYTE, view, "native", MPI_INFO_NULL));
    }
    MPI_Type_free(&view);
    for (int f = 0; f < 2; f++)
        write_turns(files[f], BLOCK, TURNS, 2 * rank + f, 2 * ranks, 6);
    for (int f = 0; f < 2; f++)
        FINE(MPI_File_close(&files[f]));
    expect_file(path, 2ll * BLOCK * TURNS * ranks, 6);
}

/* ---- again and again: nothing may grow --------------------------------------------------------------------------- */

static long resident_kib(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long total = 0, resident = 0;

    if (file == NULL || fscanf(file, "%ld %ld", &total, &resident) != 2)
        resident = 0;
    if (file != NULL)
        fclose(file);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static int open_descriptors(void)
{
    int n = 0;

    for (int fd = 0; fd < 4096; fd++) {
        char name[40];
        struct stat status;

        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        n += lstat(name, &status) == 0;
    }
    return n;
}

static void set_views(MPI_File file, int n)
{
    for (int i = 0; i < n; i++) {
        MPI_Datatype view = turns_type(BLOCK + i % 3, ranks);
        MPI_Info used;

        FINE(MPI_File_set_view(file, (MPI_Offset)rank * BLOCK, MPI_BYTE, view, "native", MPI_INFO_NULL));
        MPI_Type_free(&view);
        if (i % 10 == 0) {
            FINE(MPI_File_get_info(file, &used));
            FINE(MPI_File_set_info(file, used));
            MPI_Info_free(&used);
        }
    }
}

static void many_views(void)
{
    char path[PATH_BYTES];
    MPI_File file;
    long before;

    start_anew(path_of("file", path));
    file = open_file(MPI_COMM_WORLD, path, AMODE_NEW);
    set_views(file, 300);
    before = resident_kib();
    set_views(file, 1000);
    if (resident_kib() - before > 512)
        differs("1,000 views take %ld KiB", resident_kib() - before);
    write_and_close(&file, MPI_COMM_WORLD, 7);
    expect_file(path, (long long)BLOCK * TURNS * ranks, 7);
}

static void open_often(const char *path, int n)
{
    for (int i = 0; i < n; i++) {
        MPI_File file = open_file(MPI_COMM_WORLD, path, AMODE_NEW);

        write_and_close(&file, MPI_COMM_WORLD, 8);
    }
}

static void many_opens(void)
{
    char path[PATH_BYTES];
    int descriptors;
    long before;

    start_anew(path_of("file", path));
    open_often(path, 20);
    descriptors = open_descriptors();
    before = resident_kib();
    open_often(path, 100);
    if (resident_kib() - before > 2048)
        differs("100 files take %ld KiB", resident_kib() - before);
    EXPECT(open_descriptors() == descriptors);
    expect_file(path, (long long)BLOCK * TURNS * ranks, 8);
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

static void names(void)
{
    static const char *const all[] = {"a name with spaces", "12:30:00.dat", "ufs", "http:x",
                                      "caf\xc3\xa9",        "%s%n",         "*"};
    char path[PATH_BYTES], here[PATH_BYTES];
    MPI_File file;

    for (int i = 0; i < (int)(sizeof all / sizeof *all); i++) {
        path_of(all[i], path);
        file = open_file(MPI_COMM_WORLD, path, AMODE_NEW);
        write_and_close(&file, MPI_COMM_WORLD, i);
        expect_file(path, (long long)BLOCK * TURNS * ranks, i);
    }
    EXPECT(getcwd(here, sizeof here) != NULL && chdir(folder) == 0); /* by a relative name, then elsewhere */
    file = open_file(MPI_COMM_WORLD, "names.relative", AMODE_NEW);
    EXPECT(chdir("/") == 0);
    FINE(MPI_File_write_shared(file, "", 0, MPI_BYTE, MPI_STATUS_IGNORE));
    MPI_Barrier(MPI_COMM_WORLD);
    write_and_close(&file, MPI_COMM_WORLD, 50);
    expect_file(path_of("relative", path), (long long)BLOCK * TURNS * ranks, 50);
    EXPECT(chdir(here) == 0);
}

/* Renamed, deleted, replaced by another file of the same name: who has it open goes on with what it opened. */
static void renamed(void)
{
    char path[PATH_BYTES], moved_to[PATH_BYTES];
    MPI_File file, other;

    start_anew(path_of("file", path));
    start_anew(path_of("elsewhere", moved_to));
    file = open_file(MPI_COMM_WORLD, path, AMODE_NEW);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        EXPECT(rename(path, moved_to) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    other = open_file(MPI_COMM_WORLD, path, AMODE_NEW);
    write_and_close(&file, MPI_COMM_WORLD, 10);
    write_and_close(&other, MPI_COMM_WORLD, 11);
    expect_file(moved_to, (long long)BLOCK * TURNS * ranks, 10);
    expect_file(path, (long long)BLOCK * TURNS * ranks, 11);
    file = open_file(MPI_COMM_WORLD, path, MPI_MODE_RDWR);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        FINE(MPI_File_delete(path, MPI_INFO_NULL));
    MPI_Barrier(MPI_COMM_WORLD);
    write_and_close(&file, MPI_COMM_WORLD, 12);
    EXPECT(file_bytes(path) == -1);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* The flags differ, which MPI forbids: some ranks may be refused, and all of them access the file in one mode. */
static void atomicity_differs(void)
{
    char path[PATH_BYTES];
    MPI_File file;

    start_anew(path_of("file", path));
    file = open_file(MPI_COMM_WORLD, path, AMODE_NEW);
    MPI_File_set_atomicity(file, rank == 0);
    write_and_close(&file, MPI_COMM_WORLD, 4);
    expect_file(path, (long long)BLOCK * TURNS * ranks, 4);
}

/* Benchmarks write there; and a full device says so. */
static void devices(void)
{
    unsigned char buffer[BLOCK * TURNS] = {1}, zeros[BLOCK * TURNS] = {0};
    MPI_Datatype view = turns_type(BLOCK, ranks);
    MPI_Status status;
    MPI_File file = open_file(MPI_COMM_WORLD, "/dev/null", MPI_MODE_RDWR);

    FINE(MPI_File_set_view(file, (MPI_Offset)rank * BLOCK, MPI_BYTE, view, "native", MPI_INFO_NULL));
    FINE(MPI_File_write_all(file, buffer, BLOCK * TURNS, MPI_BYTE, &status));
    EXPECT(moved(&status, BLOCK * TURNS));
    FINE(MPI_File_write_at(file, 0, buffer, BLOCK * TURNS, MPI_BYTE, &status));
    EXPECT(moved(&status, BLOCK * TURNS));
    FINE(MPI_File_close(&file));
    file = open_file(MPI_COMM_WORLD, "/dev/zero", MPI_MODE_RDONLY);
    FINE(MPI_File_read_at_all(file, (MPI_Offset)rank * BLOCK * TURNS, buffer, BLOCK * TURNS, MPI_BYTE, &status));
    EXPECT(memcmp(buffer, zeros, sizeof zeros) == 0);
    FINE(MPI_File_close(&file));
    file = open_file(MPI_COMM_WORLD, "/dev/full", MPI_MODE_WRONLY);
    EXPECT(MPI_File_write_at_all(file, (MPI_Offset)rank * BLOCK, buffer, BLOCK, MPI_BYTE, &status) != MPI_SUCCESS);
    EXPECT(MPI_File_write_at(file, 0, buffer, BLOCK, MPI_BYTE, &status) != MPI_SUCCESS);
    FINE(MPI_File_close(&file));
    MPI_Type_free(&view);
}

/* ---- modes ------------------------------------------------------------------------------------------------------- */

/* MPI_MODE_APPEND moves the pointers at the open; a view set then begins at zero, and explicit offsets count from
 * there. */
static void append_with_view(void)
{
    char path[PATH_BYTES];
    MPI_Offset position = -1;
    MPI_File file;

    start_anew(path_of("file", path));
    file = open_file(MPI_COMM_WORLD, path, AMODE_NEW);
    write_and_close(&file, MPI_COMM_WORLD, 1);
    file = open_file(MPI_COMM_WORLD, path, MPI_MODE_WRONLY | MPI_MODE_APPEND);
    FINE(MPI_File_get_position(file, &position));
    EXPECT(position == (MPI_Offset)BLOCK * TURNS * ranks);
    write_and_close(&file, MPI_COMM_WORLD, 2);
    expect_file(path, (long long)BLOCK * TURNS * ranks, 2);
}

/* A split collective that is still open when the file is closed, and one whose end is only for show. */
static void split_left_open(void)
{
    char path[PATH_BYTES];
    unsigned char buffer[BLOCK];
    MPI_File file;

    start_anew(path_of("file", path));
    fill_from(buffer, (long long)rank * BLOCK, BLOCK, 3);
    file = open_file(MPI_COMM_WORLD, path, AMODE_NEW);
    FINE(MPI_File_write_at_all_begin(file, (MPI_Offset)rank * BLOCK, buffer, BLOCK, MPI_BYTE));
    FINE(MPI_File_write_at_all_end(file, buffer, MPI_STATUS_IGNORE));
    memset(buffer, 0, BLOCK);
    FINE(MPI_File_read_at_all_begin(file, (MPI_Offset)rank * BLOCK, buffer, BLOCK, MPI_BYTE));
    FINE(MPI_File_close(&file));
    expect_file(path, (long long)BLOCK * ranks, 3);
}

/* Ranks that do not agree about the access mode: an error everywhere or success everywhere, not a hang. */
static void modes_differ(void)
{
    char path[PATH_BYTES];
    const int odd = rank % 2 ? MPI_MODE_SEQUENTIAL : 0;
    MPI_File file = MPI_FILE_NULL;
    int code, all[2];

    start_anew(path_of("file", path));
    code = MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_WRONLY | MPI_MODE_CREATE | odd, MPI_INFO_NULL, &file);
    all[0] = code == MPI_SUCCESS;
    all[1] = code != MPI_SUCCESS;
    MPI_Allreduce(MPI_IN_PLACE, all, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (code == MPI_SUCCESS && !all[1])
        FINE(MPI_File_close(&file));
}

const stranger files_cases[] = {
    {"freed_early", 1, freed_early},
    {"derived_comms", 1, derived_comms},
    {"orders", 1, orders},
    {"each_for_itself", 1, each_for_itself},
    {"twice", 1, twice},
    {"many_views", 1, many_views},
    {"many_opens", 1, many_opens},
    {"names", 1, names},
    {"renamed", 1, renamed},
    {"atomicity_differs", 1, atomicity_differs},
    {"devices", 1, devices},
    {"append_with_view", 1, append_with_view},
    {"split_left_open", 1, split_left_open},
    {"modes_differ", 2, modes_differ},
    {NULL, 0, NULL},
};
