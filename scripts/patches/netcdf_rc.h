/*
 * netCDF-C 4.9.0 declares nc_rc_set and nc_rc_get in its header, and no library of that release has them; netCDF4 for
 * Python believes the header and calls one at import. Included before everything else when netCDF4 is compiled, these
 * do their work by what the library does have: its table of .ncrc entries.
 */
extern int nc_initialize(void);
extern int NC_rcfile_insert(const char *key, const char *value, const char *host, const char *path);
extern char *NC_rclookup(const char *key, const char *host, const char *path);

static inline int nc_rc_set(const char *key, const char *value)
{
    int status = nc_initialize();
    return status ? status : NC_rcfile_insert(key, value, 0, 0);
}

static inline const char *nc_rc_get(const char *key)
{
    return nc_initialize() ? 0 : NC_rclookup(key, 0, 0);
}
