/* The kernels for every processor. */

#include "core.h"

#define LEVEL baseline
#include "kernels.h"
