/* Programs keep here what they can make again: $XDG_CACHE_HOME/kaio, else $HOME/.cache/kaio. */
#ifndef KAIO_BASE_CACHE_H
#define KAIO_BASE_CACHE_H

#include "base/diag.h"

/* The path of a file in it; NULL where neither variable says where that is. A relative
 * XDG_CACHE_HOME is ignored, as its specification wants. */
const char *cache_path(struct arena *a, const char *file);
/* Makes the folders that the path goes through; whether that worked shows when the file is
 * written. */
void cache_make_folders(struct arena *a, const char *path);
/* Removes the files of the folder that were written first until no more than `most` are left. */
void cache_trim(struct arena *a, const char *folder, size_t most);

#endif
