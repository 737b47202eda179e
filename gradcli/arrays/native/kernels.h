/* All kernels, compiled for one level. */

#include "elementary.h"
#include "random.h"
#include "order.h"
#include "pointwise.h"
#include "half.h"
#include "norms.h"
#include "rows.h"
#include "recurrent.h"
#include "convolution.h"
#include "products.h"
#include "special.h"
#include "elimination.h"
