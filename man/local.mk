# manual pages: append to dist_man_MANS
