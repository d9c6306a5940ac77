/* After the last .k file: gives C its own names back. No include guard: it may follow each
 * prelude. */
#undef fma
#undef abs
#undef rint
#undef floor
#undef ceil
#undef trunc
#undef sqrt
#undef min
#undef max
#undef mulhi
#undef clz
