/* All kernels, compiled for one level. */

#include "elementary.h"
#include "random.h"
#include "order.h"
