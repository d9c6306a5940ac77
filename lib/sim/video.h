/* The instructions on two or four parts of a register: vadd2, vabsdiff4 ... Private to lib/sim. */
#ifndef KAIO_SIM_VIDEO_H
#define KAIO_SIM_VIDEO_H

enum sim_video { SIM_VADD, SIM_VSUB, SIM_VAVRG, SIM_VABSDIFF, SIM_VMIN, SIM_VMAX };

enum sim_video_flag {
    SIM_VIDEO_4 = 1, /* four parts */
    SIM_VIDEO_D = 2, /* the result is signed */
    SIM_VIDEO_A = 4, /* the sources are */
    SIM_VIDEO_B = 8,
    SIM_VIDEO_SAT = 16,
    SIM_VIDEO_ADD = 32, /* the parts are added up, and to c */
};

#endif
