/* Flat programs: steps on arrays whose memory, shapes and strides are fixed, run in one call.
 *
 * A step is one of
 *   ("loop", ufunc, number, array, …)  the loop of that number of a ufunc of NumPy's, over arrays of one
 *                                      shape, whose last dimension is the loop's own; its last array is
 *                                      written to, and may be an operand, with strides of 0
 *   ("chain", length, block, loop, …)  loops over as many elements, each a tuple as above, that all run
 *                                      over one block of elements after the other; arrays of the
 *                                      length of a block, and no more, serve each of them
 *   ("product", ufunc, number, left, right, out)    the same of `matmul`, for matrices
 *   ("kernel", name, argument, …)      a kernel of kernels.def
 *   ("copy", array, out)               of one shape, and one dtype or two of CASTS
 *   ("where", condition, one, other, out)   elements of one where the condition is true, else of the
 *                                      other: all of one shape, and all but the bools of one dtype
 *   ("take", array, positions, out)    rows of the array, one for each of the positions, which must be
 *                                      there; all three lie in a row, the positions are of 64 bits
 *   ("pick", array, out, positions, …) the elements at positions of 64 bits along each dimension, which
 *                                      must be there; all but the array are of one shape
 *   ("place", array, values, positions, …)    the same the other way: values are written to them
 *   ("add", array, values, positions, …)      and are added to them, floats or doubles one after another
 *   ("call", function, argument, …)    whatever else; its result is left alone
 *   ("advance", function, argument, …) the same, of what it changes beside memory
 *   ("same", array, bytes)             the elements must be these
 *   ("nonzero", array, number)         so many of the bools must be true
 *   ("equal", object, key, value)      `object[key]` must be equal to the value
 *   ("is", object, name, value)        an attribute must be the value
 *   ("idle", object, name)             an attribute must be false
 *   ("count", object, name, number)    is added to an attribute
 *   ("set", object, name, value)       an attribute becomes the value
 *   ("read", object, name, list)       the list holds the attribute's value
 *   ("put", object, name, list, number)    an attribute becomes what the list holds, plus the number
 *   ("changes",)                       what follows changes what outlives the program
 * What does not hold, and a `call` that fails, end the run: another function then does all of it
 * again. Behind "changes" nothing may end a run: that is an error.
 * A run that ends early, having begun, is undone by a function of the program's, where it has one.
 * A run that begins while another one computes in the same memory (a thread's, or one that a call of
 * Python's has begun) leaves it all to the other function.
 * A program returns a tuple: for each output what a function gives; or, for three arrays, the first
 * one's elements in the others by turns, so that those of a run stand until the run after the next;
 * or, for two, of which steps alone write all of the first one, the one that this run wrote: the
 * next one writes to the other. */

enum { MOST_OPERANDS = 6, MOST_DIMENSIONS = 8, CORE = 3, BETWEEN_SIGNALS = 64 };
enum { LONG = 1 << 17 }; /* bytes of a step's arrays from which on it gives the lock away */

typedef void (*Loop)(char **pointers, const Py_ssize_t *sizes, const Py_ssize_t *strides, void *data);

/* How a ufunc of NumPy's begins, from its header `ufuncobject.h`. */
typedef struct {
    PyObject_HEAD
    int nin, nout, nargs, identity;
    Loop *functions;
    void *const *data;
    int ntypes, reserved;
    const char *name, *types;
} UFunc;

typedef enum { LOOP, CHAIN, KERNEL_CALL, COPY, CAST, CALL, SAME, NONZERO, EQUAL, IS, IDLE, COUNT, SET, READ, PUT, TAKE, PICK, PLACE, ADD, CHANGES } StepKind;

/* Casts, by the letters of two formats: between floats, and from what lies in them exactly or is
 * rounded as C rounds. */
#define CASTS(CAST)                            \
    CAST('f', float, 'd', double, widened)     \
    CAST('d', double, 'f', float, narrowed)    \
    CAST('?', unsigned char, 'f', float, bit)  \
    CAST('?', unsigned char, 'd', double, bits) \
    CAST('q', int64_t, 'f', float, rounded)    \
    CAST('q', int64_t, 'd', double, integer)   \
    CAST('b', signed char, 'i', int32_t, whole)

typedef void (*Cast)(char *to, const char *from, Py_ssize_t size, Py_ssize_t there, Py_ssize_t here);

#define DEFINE_CAST(of, From, as, To, name)                                                            \
    static void name(char *to, const char *from, Py_ssize_t size, Py_ssize_t there, Py_ssize_t here) \
    {                                                                                                  \
        if (here == sizeof(From) && there == sizeof(To))                                               \
            for (Py_ssize_t k = 0; k < size; k++) ((To *)to)[k] = (To)((const From *)from)[k];        \
        else                                                                                           \
            for (Py_ssize_t k = 0; k < size; k++)                                                     \
                *(To *)(to + k * there) = (To) * (const From *)(from + k * here);                     \
    }
CASTS(DEFINE_CAST)

/* A dimension: its size, and how far the elements of each array are apart along it. */
typedef struct {
    Py_ssize_t size, apart[MOST_OPERANDS];
} Dimension;

typedef struct Step {
    StepKind kind;
    int rank, operands;                 /* dimensions around the loop, and arrays */
    Dimension *around;                  /* those around it, outermost first */
    Py_ssize_t inner[1 + CORE], strides[3 * CORE]; /* of the loop itself */
    char *pointers[MOST_OPERANDS];
    Loop loop;
    Cast cast;
    void *data;
    const Kernel *kernels;
    Argument *arguments;
    const double **numbers;             /* where numbers of a kernel are read in every run */
    Py_ssize_t bytes;                   /* of an element, or of all that must be the same */
    int64_t much;                       /* bytes of a loop's or a kernel's arrays */
    struct Step *links;                 /* the loops of a chain, so many as it has operands */
    PyObject *parts[4];                 /* borrowed from the description, of what computes none */
} Step;

typedef struct {
    char **pointer;
    Py_ssize_t apart;
} Turn;

typedef struct {
    PyObject_HEAD
    PyObject *held, *outputs, *otherwise; /* what steps use, what is returned, the other function */
    PyObject *undo;                            /* what is called first where a step has run, or None */
    PyObject *targets;                         /* where arguments are copied to */
    Py_ssize_t count, given;
    int turn;                                  /* which of two arrays takes an output's elements */
    int running;
    Step *steps, *into, *out;                  /* `out` has two steps for each output */
    Turn *turns;                               /* pointers of steps that lead elsewhere by turns */
    Py_ssize_t turning;
    char (*formats)[4];                        /* of the arguments */
} Program;

static const struct {
    const char *name, *signature;
    Kernel kernels[3];
} KERNELS[] = {
#define DEFINE(name, signature, fused) {#name, signature, LEVELS(name)},
#include "kernels.def"
#undef DEFINE
};

static int mistake(const char *what)
{
    PyErr_SetString(PyExc_ValueError, what);
    return -1;
}

/* Look at an array: its pointer, shape and strides stay valid as long as it lives. */
static int look(PyObject *array, Py_buffer *view, int writable)
{
    int flags = PyBUF_STRIDES | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(array, view, flags) < 0) return -1;
    if (view->ndim <= MOST_DIMENSIONS) return 0;
    PyBuffer_Release(view);
    return mistake("too many dimensions");
}

/* Whether a ufunc lies in memory as the header says, and has a loop of that number. */
static int check_ufunc(PyObject *ufunc, Py_ssize_t number, int operands)
{
    static const char *const NAMES_OF_COUNTS[] = {"nin", "nout", "nargs", "ntypes"};
    const UFunc *found = (const UFunc *)ufunc;
    PyObject *name = PyObject_GetAttrString(ufunc, "__name__");
    if (!name) return -1;
    int differs = 0;
    for (int k = 0; k < 4 && !differs; k++) {
        PyObject *count = PyObject_GetAttrString(ufunc, NAMES_OF_COUNTS[k]);
        if (!count) {
            Py_DECREF(name);
            return -1;
        }
        int held = k == 0 ? found->nin : k == 1 ? found->nout : k == 2 ? found->nargs : found->ntypes;
        differs = PyLong_AsLong(count) != held;
        Py_DECREF(count);
    }
    differs = differs || PyUnicode_CompareWithASCIIString(name, found->name) != 0;
    Py_DECREF(name);
    if (differs) return mistake("a ufunc of another layout");
    if (number < 0 || number >= found->ntypes || operands != found->nargs)
        return mistake("no such loop");
    return 0;
}

/* Whether an array's elements are aligned, and of the type that a ufunc's loop is for. */
static int is_of_type(const Py_buffer *view, char type)
{
    static const char FORMATS[] = "?bBhHiIlLqQfd"; /* by NumPy's numbers of types */
    const char *format = view->format;
    return type >= 0 && type < (int)sizeof FORMATS - 1 && format[0] == FORMATS[(int)type] && !format[1] &&
           (uintptr_t)view->buf % (size_t)view->itemsize == 0;
}

/* Take the arrays of a loop, of which `core` dimensions are the loop's own. */
static int take_loop(Step *step, PyObject *described, int core)
{
    Py_ssize_t operands = PyTuple_Size(described) - 3;
    PyObject *ufunc = PyTuple_GetItem(described, 1);
    Py_ssize_t number = PyLong_AsSsize_t(PyTuple_GetItem(described, 2));
    if (operands < 1 || operands > MOST_OPERANDS) return mistake("too many operands");
    if (check_ufunc(ufunc, number, (int)operands) < 0) return -1;
    Py_ssize_t shapes[MOST_OPERANDS][MOST_DIMENSIONS];
    step->kind = LOOP;
    step->operands = (int)operands;
    step->loop = ((UFunc *)ufunc)->functions[number];
    step->data = ((UFunc *)ufunc)->data[number];
    for (int k = 0; k < operands; k++) {
        Py_buffer view;
        if (look(PyTuple_GetItem(described, 3 + k), &view, k == operands - 1) < 0) return -1;
        int wrong = view.ndim < core || (k && view.ndim - core != step->rank) ||
                    !is_of_type(&view, ((UFunc *)ufunc)->types[number * operands + k]);
        step->rank = wrong ? 0 : view.ndim - core;
        step->pointers[k] = view.buf;
        for (int d = 0; d < step->rank && !wrong; d++) {
            wrong = k && view.shape[d] != step->around[d].size;
            step->around[d].size = view.shape[d];
            step->around[d].apart[k] = view.strides[d];
        }
        for (int d = 0; d < core && !wrong; d++) {
            shapes[k][d] = view.shape[step->rank + d];
            step->strides[core == 2 ? operands + 2 * k + d : k] = view.strides[step->rank + d];
        }
        step->much += view.len;
        PyBuffer_Release(&view);
        if (wrong) return mistake("operands of other shapes");
    }
    if (core == 1) {
        step->inner[0] = shapes[0][0];
        for (int k = 1; k < operands; k++)
            if (shapes[k][0] != shapes[0][0]) return mistake("operands of other shapes");
        return 0;
    }
    if (operands != 3 || shapes[0][1] != shapes[1][0] || shapes[0][0] != shapes[2][0] ||
        shapes[1][1] != shapes[2][1])
        return mistake("operands of other shapes");
    step->inner[0] = 1;
    step->inner[1] = shapes[0][0];
    step->inner[2] = shapes[0][1];
    step->inner[3] = shapes[1][1];
    return 0;
}

#define DEFINE_CHOICE(name, Type)                                                                   \
    static void name(char **pointers, const Py_ssize_t *sizes, const Py_ssize_t *strides, void *data) \
    {                                                                                               \
        (void)data;                                                                                 \
        for (Py_ssize_t k = 0; k < sizes[0]; k++) {                                                 \
            int side = pointers[0][k * strides[0]] ? 1 : 2;                                         \
            memcpy(pointers[3] + k * strides[3], pointers[side] + k * strides[side], sizeof(Type)); \
        }                                                                                           \
    }
DEFINE_CHOICE(choose_bytes, char)
DEFINE_CHOICE(choose_words, int32_t)
DEFINE_CHOICE(choose_longs, int64_t)

/* Take the arrays of a choice, whose last dimension is the loop's own. */
static int take_choice(Step *step)
{
    char format[4] = "?";
    step->kind = LOOP;
    step->operands = 4;
    for (int k = 0; k < 4; k++) {
        Py_buffer view;
        if (look(step->parts[k], &view, k == 3) < 0) return -1;
        int wrong = view.ndim < 1 || (k && view.ndim - 1 != step->rank) || strlen(view.format) >= sizeof format;
        if (k == 1 && !wrong) strcpy(format, view.format);
        wrong = wrong || strcmp(view.format, format) != 0;
        step->rank = wrong ? 0 : view.ndim - 1;
        step->pointers[k] = view.buf;
        for (int d = 0; d <= step->rank && !wrong; d++) {
            Py_ssize_t *size = d < step->rank ? &step->around[d].size : &step->inner[0];
            wrong = k && view.shape[d] != *size;
            *size = view.shape[d];
            *(d < step->rank ? &step->around[d].apart[k] : &step->strides[k]) = view.strides[d];
        }
        step->much += view.len;
        step->bytes = view.itemsize;
        PyBuffer_Release(&view);
        if (wrong) return mistake("a choice among arrays of other shapes or dtypes");
    }
    step->loop = step->bytes == 1 ? choose_bytes : step->bytes == 4 ? choose_words : choose_longs;
    return step->bytes == 1 || step->bytes == 4 || step->bytes == 8 ? 0 : mistake("elements of another width");
}

/* Take a loop of a chain, whose arrays have one dimension: `apart` says how far they are advanced
 * from block to block, for each element of it. */
static int take_link(Step *link, PyObject *described, Py_ssize_t length, Py_ssize_t block)
{
    PyObject *name = PyTuple_Check(described) && PyTuple_Size(described) > 3 ? PyTuple_GetItem(described, 0) : Py_None;
    if (!PyUnicode_Check(name) || PyUnicode_CompareWithASCIIString(name, "loop") != 0)
        return mistake("no loop of a chain");
    Py_ssize_t operands = PyTuple_Size(described) - 3;
    const UFunc *ufunc = (const UFunc *)PyTuple_GetItem(described, 1);
    Py_ssize_t number = PyLong_AsSsize_t(PyTuple_GetItem(described, 2));
    if (operands > MOST_OPERANDS) return mistake("too many operands");
    if (check_ufunc((PyObject *)ufunc, number, (int)operands) < 0) return -1;
    link->kind = LOOP;
    link->operands = (int)operands;
    link->loop = ufunc->functions[number];
    link->data = ufunc->data[number];
    for (int k = 0; k < operands; k++) {
        Py_buffer view;
        if (look(PyTuple_GetItem(described, 3 + k), &view, k == operands - 1) < 0) return -1;
        int wrong = view.ndim != 1 || !is_of_type(&view, ufunc->types[number * operands + k]);
        if (!wrong) {
            wrong = view.shape[0] != length && view.shape[0] != block;
            link->strides[k] = view.strides[0];
            link->around[0].apart[k] = view.shape[0] == length ? view.strides[0] : 0;
        }
        link->pointers[k] = view.buf;
        link->much += view.len;
        PyBuffer_Release(&view);
        if (wrong) return mistake("operands of other shapes");
    }
    return 0;
}

static int take_chain(Step *step, PyObject *described)
{
    Py_ssize_t count = PyTuple_Size(described) - 3;
    step->kind = CHAIN;
    step->inner[0] = PyLong_AsSsize_t(step->parts[0]);
    step->bytes = PyLong_AsSsize_t(step->parts[1]);
    if (PyErr_Occurred()) return -1;
    if (step->inner[0] < 0 || step->bytes < 1) return mistake("no length, or no block");
    step->links = PyMem_Calloc((size_t)count, sizeof *step->links + sizeof(Dimension));
    if (!step->links) return PyErr_NoMemory(), -1;
    step->operands = (int)count;
    for (Py_ssize_t k = 0; k < count; k++) {
        step->links[k].around = (Dimension *)(step->links + count) + k;
        PyObject *link = PyTuple_GetItem(described, 3 + k);
        if (take_link(&step->links[k], link, step->inner[0], step->bytes) < 0) return -1;
        step->much += step->links[k].much;
    }
    return 0;
}

static int take_kernel(Step *step, PyObject *described)
{
    PyObject *name = PyTuple_GetItem(described, 1);
    Py_ssize_t count = PyTuple_Size(described) - 2;
    step->kind = KERNEL_CALL;
    for (size_t each = 0; each < sizeof KERNELS / sizeof *KERNELS; each++) {
        const char *signature = KERNELS[each].signature;
        if (!PyUnicode_Check(name) || PyUnicode_CompareWithASCIIString(name, KERNELS[each].name)) continue;
        if (count != (Py_ssize_t)strlen(signature)) return mistake("not so many arguments");
        step->kernels = KERNELS[each].kernels;
        step->arguments = PyMem_Calloc((size_t)count, sizeof *step->arguments);
        step->numbers = PyMem_Calloc((size_t)count, sizeof *step->numbers);
        step->operands = (int)count;
        if (!step->arguments || !step->numbers) return PyErr_NoMemory(), -1;
        for (Py_ssize_t k = 0; k < count; k++) {
            Py_buffer view;
            PyObject *given = PyTuple_GetItem(described, 2 + k);
            char letter = signature[k];
            int is_read = letter == 'x' && !PyFloat_Check(given) && PyObject_CheckBuffer(given);
            int found = take(given, is_read ? 'd' : letter, &step->arguments[k], &view);
            if (is_read && found > 0) step->numbers[k] = view.buf;
            if (found < 0) return -1;
            if (found == 0) continue;
            step->much += view.len;
            PyBuffer_Release(&view); /* which leaves its numbers */
        }
        return 0;
    }
    return mistake("no such kernel");
}

/* The letter of an array's format, one for all integers of 64 bits; 0 for what is none of one. */
static char letter_of(const Py_buffer *view)
{
    if (view->format[0] == 0 || view->format[1] != 0) return 0;
    return view->format[0] == 'l' && view->itemsize == sizeof(int64_t) ? 'q' : view->format[0];
}

static Cast cast_of(char source, char target)
{
#define FOUND(of, From, as, To, name) \
    if (source == of && target == as) return name;
    CASTS(FOUND)
#undef FOUND
    return NULL;
}

static int take_copy(Step *step, PyObject *from, PyObject *to)
{
    Py_buffer source, target;
    if (look(from, &source, 0) < 0) return -1;
    if (look(to, &target, 1) < 0) {
        PyBuffer_Release(&source);
        return -1;
    }
    step->kind = COPY;
    step->rank = source.ndim;
    step->bytes = source.itemsize;
    step->cast = strcmp(target.format, source.format) == 0 ? NULL : cast_of(letter_of(&source), letter_of(&target));
    if (step->cast) step->kind = CAST;
    int wrong = target.ndim != source.ndim ||
                (step->kind == COPY && strcmp(target.format, source.format) != 0);
    for (int d = 0; d < source.ndim && !wrong; d++) {
        wrong = source.shape[d] != target.shape[d];
        step->around[d].size = source.shape[d];
        step->around[d].apart[0] = source.strides[d];
        step->around[d].apart[1] = target.strides[d];
    }
    step->pointers[0] = source.buf;
    step->pointers[1] = target.buf;
    PyBuffer_Release(&source);
    PyBuffer_Release(&target);
    return wrong ? mistake("a copy of another shape or dtype") : 0;
}

/* Take dimensions of a copy together that lie in a row on both sides. */
static void join_dimensions(Step *step)
{
    int last = 0;
    for (int d = 1; d < step->rank; d++) {
        int in_a_row = 1;
        for (int k = 0; k < 2; k++)
            in_a_row = in_a_row && step->around[last].apart[k] == step->around[d].size * step->around[d].apart[k];
        Py_ssize_t size = in_a_row ? step->around[last].size * step->around[d].size : step->around[d].size;
        last += !in_a_row;
        step->around[last] = step->around[d];
        step->around[last].size = size;
    }
    if (step->rank) step->rank = last + 1;
}

static int take_same(Step *step, PyObject *array, PyObject *bytes)
{
    Py_buffer view;
    char *expected;
    Py_ssize_t length;
    if (PyBytes_AsStringAndSize(bytes, &expected, &length) < 0 || look(array, &view, 0) < 0) return -1;
    int wrong = view.len != length || !PyBuffer_IsContiguous(&view, 'C');
    step->kind = SAME;
    step->pointers[0] = view.buf;
    step->pointers[1] = expected;
    step->bytes = length;
    PyBuffer_Release(&view);
    return wrong ? mistake("not so many bytes") : 0;
}

static int take_nonzero(Step *step, PyObject *array, PyObject *number)
{
    Py_buffer view;
    step->kind = NONZERO;
    step->inner[0] = PyLong_AsSsize_t(number);
    if ((step->inner[0] == -1 && PyErr_Occurred()) || look(array, &view, 0) < 0) return -1;
    int wrong = strcmp(view.format, "?") != 0 || !PyBuffer_IsContiguous(&view, 'A');
    step->pointers[0] = view.buf;
    step->bytes = view.len;
    PyBuffer_Release(&view);
    return wrong ? mistake("no bools in a row") : 0;
}

static int take_rows(Step *step)
{
    Py_buffer views[3];
    int wrong = 0;
    for (int k = 0; k < 3; k++) {
        if (look(step->parts[k], &views[k], k == 2) < 0) return -1;
        wrong = wrong || !PyBuffer_IsContiguous(&views[k], 'C');
        step->pointers[k] = views[k].buf;
        PyBuffer_Release(&views[k]);
    }
    if (wrong || !views[0].ndim || views[1].itemsize != 8 || !strchr("lq", *views[1].format) ||
        views[0].shape[0] < 1 || strcmp(views[0].format, views[2].format) != 0)
        return mistake("no rows, or no positions");
    step->kind = TAKE;
    step->bytes = views[0].len / views[0].shape[0];
    step->inner[0] = views[1].len / 8;
    step->inner[1] = views[0].shape[0];
    return views[2].len == step->inner[0] * step->bytes ? 0 : mistake("rows of another shape");
}

/* Take an array, the elements that are read or written, and their positions. */
static int take_elements(Step *step, PyObject *described, StepKind kind)
{
    int writes = kind != PICK;
    Py_ssize_t dimensions = PyTuple_Size(described) - 3;
    Py_buffer whole, view;
    if (look(PyTuple_GetItem(described, 1), &whole, writes) < 0) return -1;
    int wrong = whole.ndim != dimensions ||
                (kind == ADD && strcmp(whole.format, "f") != 0 && strcmp(whole.format, "d") != 0);
    wrong = wrong || (uintptr_t)whole.buf % (size_t)whole.itemsize;
    step->kind = kind;
    step->bytes = whole.itemsize;
    step->pointers[MOST_OPERANDS - 1] = whole.buf;
    for (Py_ssize_t d = 0; d < dimensions && !wrong; d++) {
        step->inner[d] = whole.shape[d];
        step->strides[d] = whole.strides[d];
    }
    for (int k = 0; k <= dimensions && !wrong; k++) {
        if (look(PyTuple_GetItem(described, 2 + k), &view, k == 0 && !writes) < 0) {
            PyBuffer_Release(&whole);
            return -1;
        }
        if (k) wrong = view.ndim != step->rank || view.itemsize != 8 || !strchr("lq", *view.format);
        else wrong = strcmp(view.format, whole.format) != 0 || (uintptr_t)view.buf % (size_t)view.itemsize;
        if (!k) step->rank = view.ndim;
        step->pointers[k] = view.buf;
        for (int d = 0; d < step->rank && !wrong; d++) {
            wrong = k && view.shape[d] != step->around[d].size;
            step->around[d].size = view.shape[d];
            step->around[d].apart[k] = view.strides[d];
        }
        PyBuffer_Release(&view);
    }
    PyBuffer_Release(&whole);
    step->operands = 1 + (int)dimensions;
    return wrong ? mistake("no elements, or no positions") : 0;
}

static int take_step(Step *step, PyObject *described)
{
    static const struct {
        const char *name;
        Py_ssize_t least, most;
    } FORMS[] = {{"loop", 4, 9}, {"product", 6, 6}, {"kernel", 2, 18}, {"copy", 3, 3}, {"same", 3, 3},
                 {"call", 3, 3}, {"equal", 4, 4}, {"is", 4, 4}, {"idle", 3, 3}, {"count", 4, 4},
                 {"advance", 3, 3}, {"changes", 1, 1}, {"nonzero", 3, 3}, {"set", 4, 4},
                 {"read", 4, 4}, {"put", 5, 5}, {"take", 4, 4}, {"pick", 4, 3 + CORE},
                 {"place", 4, 3 + CORE}, {"add", 4, 3 + CORE}, {"chain", 4, 1 << 16},
                 {"where", 5, 5}};
    enum { COUNT_OF_FORMS = sizeof FORMS / sizeof *FORMS };
    if (!PyTuple_Check(described) || PyTuple_Size(described) < 1) return mistake("no step");
    PyObject *name = PyTuple_GetItem(described, 0);
    Py_ssize_t length = PyTuple_Size(described);
    int form = 0;
    while (form < COUNT_OF_FORMS &&
           (!PyUnicode_Check(name) || PyUnicode_CompareWithASCIIString(name, FORMS[form].name)))
        form++;
    if (form == COUNT_OF_FORMS || length < FORMS[form].least || length > FORMS[form].most) return mistake("no such step");
    for (Py_ssize_t k = 1; k < length && k < 5; k++) step->parts[k - 1] = PyTuple_GetItem(described, k);
    switch (form) {
    case 0: return take_loop(step, described, 1);
    case 1: return take_loop(step, described, 2);
    case 2: return take_kernel(step, described);
    case 3:
        if (take_copy(step, step->parts[0], step->parts[1]) < 0) return -1;
        join_dimensions(step);
        return 0;
    case 4: return take_same(step, step->parts[0], step->parts[1]);
    case 5:
    case 10: step->kind = CALL; return PyTuple_Check(step->parts[1]) ? 0 : mistake("no arguments");
    case 6: step->kind = EQUAL; return 0;
    case 7: step->kind = IS; return 0;
    case 8: step->kind = IDLE; return 0;
    case 11: step->kind = CHANGES; return 0;
    case 12: return take_nonzero(step, step->parts[0], step->parts[1]);
    case 13: step->kind = SET; return 0;
    case 14:
    case 15:
        step->kind = form == 14 ? READ : PUT;
        if (PyList_Check(step->parts[2]) && PyList_Size(step->parts[2]) == 1) return 0;
        return mistake("no list of one");
    case 16: return take_rows(step);
    case 17: return take_elements(step, described, PICK);
    case 18: return take_elements(step, described, PLACE);
    case 19: return take_elements(step, described, ADD);
    case 20: return take_chain(step, described);
    case 21: return take_choice(step);
    default: step->kind = COUNT; return 0;
    }
}

/* Take a step, or a copy between two arrays. What is noted for each dimension is kept of those that
 * there are: most steps have one or none. */
static int take_kept(Step *step, PyObject *described, PyObject *from, PyObject *to)
{
    Dimension around[MOST_DIMENSIONS] = {{0}};
    step->around = around;
    int failed = described ? take_step(step, described) : take_copy(step, from, to);
    size_t bytes = failed < 0 ? 0 : (size_t)step->rank * sizeof *around;
    step->around = bytes ? PyMem_Malloc(bytes) : NULL;
    if (!bytes) return failed;
    if (!step->around) return PyErr_NoMemory(), -1;
    memcpy(step->around, around, bytes);
    return 0;
}

/* --- running ---------------------------------------------------------------------------------- */

/* Go on to the next place of so many dimensions, the first ones; 0 behind the last. */
static int advance_of(const Step *step, int dimensions, Py_ssize_t *at, char **pointers)
{
    for (int d = dimensions - 1; d >= 0; d--) {
        int more = ++at[d] < step->around[d].size;
        for (int k = 0; k < step->operands; k++)
            pointers[k] += more ? step->around[d].apart[k] : -(step->around[d].size - 1) * step->around[d].apart[k];
        if (more) return 1;
        at[d] = 0;
    }
    return 0;
}

/* The same of the dimensions around a loop. */
static int advance(const Step *step, Py_ssize_t *at, char **pointers)
{
    return advance_of(step, step->rank, at, pointers);
}

static void run_loop(const Step *step)
{
    Py_ssize_t at[MOST_DIMENSIONS] = {0};
    char *pointers[MOST_OPERANDS], *passed[MOST_OPERANDS];
    for (int d = 0; d < step->rank; d++)
        if (step->around[d].size == 0) return;
    memcpy(pointers, step->pointers, sizeof pointers);
    do {
        memcpy(passed, pointers, sizeof passed);
        step->loop(passed, step->inner, step->strides, step->data);
    } while (advance(step, at, pointers));
}

static void run_chain(const Step *step)
{
    char *pointers[MOST_OPERANDS];
    Py_ssize_t sizes[1 + CORE] = {0};
    for (Py_ssize_t at = 0; at < step->inner[0]; at += step->bytes) {
        sizes[0] = step->inner[0] - at < step->bytes ? step->inner[0] - at : step->bytes;
        for (const Step *link = step->links; link < step->links + step->operands; link++) {
            for (int k = 0; k < link->operands; k++)
                pointers[k] = link->pointers[k] + at * link->around[0].apart[k];
            link->loop(pointers, sizes, link->strides, link->data);
        }
    }
}

/* Elements of a number of bytes that the compiler knows. One that is repeated stays in a register. */
INLINE void copy_apart(char *to, const char *from, Py_ssize_t size, Py_ssize_t there, Py_ssize_t here, const size_t bytes)
{
    uint64_t element = 0;
    if (here == 0 && size) {
        memcpy(&element, from, bytes);
        if (there == (Py_ssize_t)bytes)
            for (Py_ssize_t k = 0; k < size; k++) memcpy(to + k * (Py_ssize_t)bytes, &element, bytes);
        else
            for (Py_ssize_t k = 0; k < size; k++) memcpy(to + k * there, &element, bytes);
    } else {
        for (Py_ssize_t k = 0; k < size; k++) memcpy(to + k * there, from + k * here, bytes);
    }
}

static void copy_elements(char *to, const char *from, const Step *step, int dimension)
{
    Py_ssize_t size = dimension < step->rank ? step->around[dimension].size : 1;
    Py_ssize_t there = dimension < step->rank ? step->around[dimension].apart[1] : 0;
    Py_ssize_t here = dimension < step->rank ? step->around[dimension].apart[0] : 0;
    if (dimension + 1 < step->rank) {
        for (Py_ssize_t k = 0; k < size; k++)
            copy_elements(to + k * there, from + k * here, step, dimension + 1);
    } else if (step->cast) {
        step->cast(to, from, size, there, here);
    } else if (there == step->bytes && here == step->bytes) {
        memmove(to, from, (size_t)(size * step->bytes));
    } else if (step->bytes == 8) {
        copy_apart(to, from, size, there, here, 8);
    } else if (step->bytes == 4) {
        copy_apart(to, from, size, there, here, 4);
    } else {
        for (Py_ssize_t k = 0; k < size; k++)
            memcpy(to + k * there, from + k * here, (size_t)step->bytes);
    }
}

/* Copy rows; 0 where a position is not there. */
static int copy_rows(const Step *step)
{
    const int64_t *at = (const int64_t *)step->pointers[1];
    for (Py_ssize_t k = 0; k < step->inner[0]; k++) {
        if (at[k] < 0 || at[k] >= step->inner[1]) return 0;
        memcpy(step->pointers[2] + k * step->bytes, step->pointers[0] + at[k] * step->bytes, (size_t)step->bytes);
    }
    return 1;
}

/* Read, write or add elements along the last dimension, by positions in so many dimensions; 0 where a
 * position is not there. */
INLINE int copy_line(const Step *step, char *const *pointers, const int dimensions, const int adds)
{
    Py_ssize_t count = step->rank ? step->around[step->rank - 1].size : 1;
    const Py_ssize_t *apart = step->rank ? step->around[step->rank - 1].apart : step->strides;
    for (Py_ssize_t k = 0; k < count; k++) {
        char *element = step->pointers[MOST_OPERANDS - 1], *value = pointers[0] + k * apart[0];
        for (int d = 0; d < dimensions; d++) {
            int64_t place;
            memcpy(&place, pointers[1 + d] + k * apart[1 + d], sizeof place);
            if (place < 0 || place >= step->inner[d]) return 0;
            element += place * step->strides[d];
        }
        if (adds && step->bytes == sizeof(float)) *(float *)element += *(const float *)value;
        else if (adds) *(double *)element += *(const double *)value;
        else if (step->kind == PICK) memcpy(value, element, (size_t)step->bytes);
        else memcpy(element, value, (size_t)step->bytes);
    }
    return 1;
}

/* The same along all dimensions. */
static int copy_picked(const Step *step)
{
    Py_ssize_t at[MOST_DIMENSIONS] = {0};
    char *pointers[MOST_OPERANDS];
    int dimensions = step->operands - 1;
    for (int d = 0; d < step->rank; d++)
        if (step->around[d].size == 0) return 1;
    memcpy(pointers, step->pointers, sizeof pointers);
    do {
        int holds = dimensions > 1 ? copy_line(step, pointers, dimensions, step->kind == ADD)
                    : step->kind == ADD ? copy_line(step, pointers, 1, 1)
                                        : copy_line(step, pointers, 1, 0);
        if (!holds) return 0;
    } while (advance_of(step, step->rank - 1, at, pointers));
    return 1;
}

static Py_ssize_t count_true(const Step *step)
{
    Py_ssize_t count = 0;
    for (Py_ssize_t k = 0; k < step->bytes; k++) count += step->pointers[0][k] != 0;
    return count;
}

/* Set an attribute to a number plus another one, of which the reference is taken. */
static int set_to_sum(const Step *step, PyObject *now, PyObject *number)
{
    PyObject *sum = now ? PyNumber_Add(now, number) : NULL;
    int failed = sum ? PyObject_SetAttr(step->parts[0], step->parts[1], sum) : -1;
    Py_XDECREF(now);
    Py_XDECREF(sum);
    return failed < 0 ? -1 : 1;
}

/* Run a loop, a chain or a kernel: 0 where something does not hold. */
static int compute(const Step *step)
{
    if (step->kind != KERNEL_CALL) {
        if (step->kind == LOOP) run_loop(step);
        else run_chain(step);
        return 1;
    }
    for (int k = 0; k < step->operands; k++)
        if (step->numbers[k]) step->arguments[k].number = *step->numbers[k];
    return step->kernels[level](step->arguments) == NULL;
}

/* Run a step: 1 where it ran, 0 where something does not hold, -1 with an exception set. */
static int run_step(const Step *step)
{
    PyObject *found = NULL;
    PyThreadState *state;
    int holds = 1;
    switch (step->kind) {
    case LOOP:
    case CHAIN:
    case KERNEL_CALL:
        if (step->much < LONG) return compute(step);
        state = PyEval_SaveThread();
        holds = compute(step);
        PyEval_RestoreThread(state);
        return holds;
    case COPY:
    case CAST: copy_elements(step->pointers[1], step->pointers[0], step, 0); return 1;
    case SAME: return memcmp(step->pointers[0], step->pointers[1], (size_t)step->bytes) == 0;
    case NONZERO: return count_true(step) == step->inner[0];
    case CHANGES: return 1;
    case TAKE: return copy_rows(step);
    case PICK:
    case PLACE:
    case ADD: return copy_picked(step);
    case COUNT: return set_to_sum(step, PyObject_GetAttr(step->parts[0], step->parts[1]), step->parts[2]);
    case READ:
        found = PyObject_GetAttr(step->parts[0], step->parts[1]);
        return found ? PyList_SetItem(step->parts[2], 0, found) < 0 ? -1 : 1 : -1;
    case PUT:
        found = PyList_GetItem(step->parts[2], 0);
        Py_XINCREF(found);
        return set_to_sum(step, found, step->parts[3]);
    case SET: return PyObject_SetAttr(step->parts[0], step->parts[1], step->parts[2]) < 0 ? -1 : 1;
    case CALL: found = PyObject_Call(step->parts[0], step->parts[1], NULL); break;
    case EQUAL:
        found = PyObject_GetItem(step->parts[0], step->parts[1]);
        if (found && found != step->parts[2])
            holds = Py_TYPE(found) == Py_TYPE(step->parts[2])
                        ? PyObject_RichCompareBool(found, step->parts[2], Py_EQ)
                        : 0;
        break;
    case IS:
        found = PyObject_GetAttr(step->parts[0], step->parts[1]);
        holds = found == step->parts[2];
        break;
    case IDLE:
        found = PyObject_GetAttr(step->parts[0], step->parts[1]);
        holds = found ? PyObject_Not(found) : 0;
        break;
    }
    Py_XDECREF(found);
    return found ? holds : -1;
}

/* Copy the arguments to where the steps read them: 0 where one lies otherwise. */
static int take_arguments(const Program *self, PyObject *given)
{
    for (Py_ssize_t k = 0; k < self->given; k++) {
        const Step *copy = &self->into[k];
        Py_buffer view;
        if (look(PyTuple_GetItem(given, k), &view, 0) < 0) return -1;
        int fits = view.ndim == copy->rank && strcmp(view.format, self->formats[k]) == 0;
        for (int d = 0; d < copy->rank && fits; d++)
            fits = view.shape[d] == copy->around[d].size &&
                   (view.shape[d] < 2 || view.strides[d] == copy->around[d].apart[0]);
        if (fits) copy_elements(copy->pointers[1], view.buf, copy, 0);
        PyBuffer_Release(&view);
        if (!fits) return 0;
    }
    return 1;
}

/* Let the next run write to the other ones of arrays that it writes to by turns. */
static void turn_over(Program *self)
{
    for (const Turn *each = self->turns; each < self->turns + self->turning; each++)
        *each->pointer += self->turn ? -each->apart : each->apart;
    self->turn = !self->turn;
}

static PyObject *results_of(Program *self)
{
    Py_ssize_t count = PyTuple_Size(self->outputs);
    PyObject *results = PyTuple_New(count);
    for (Py_ssize_t k = 0; results && k < count; k++) {
        PyObject *output = PyTuple_GetItem(self->outputs, k), *each;
        if (PyTuple_Check(output) && PyTuple_Size(output) == 2) {
            Py_INCREF(each = PyTuple_GetItem(output, self->turn));
        } else if (PyTuple_Check(output)) {
            const Step *copy = &self->out[2 * k + self->turn];
            copy_elements(copy->pointers[1], copy->pointers[0], copy, 0);
            Py_INCREF(each = PyTuple_GetItem(output, 1 + self->turn));
        } else {
            each = PyObject_CallNoArgs(output);
        }
        if (!each || PyTuple_SetItem(results, k, each) < 0) Py_CLEAR(results);
    }
    turn_over(self);
    return results;
}

/* Run a program, in whose memory nothing else runs. */
static PyObject *run_alone(Program *self, PyObject *given)
{
    int holds = take_arguments(self, given), changed = 0, begun = holds > 0;
    for (Py_ssize_t k = 0; holds > 0 && k < self->count; k++) {
        holds = run_step(&self->steps[k]);
        changed = changed || self->steps[k].kind == CHANGES;
        if (k % BETWEEN_SIGNALS == 0 && PyErr_CheckSignals() < 0) return NULL;
    }
    if (holds > 0) return results_of(self);
    if (changed) {
        if (holds == 0) PyErr_SetString(PyExc_RuntimeError, "a step failed behind a change");
        return NULL;
    }
    if (holds < 0) {
        if (!PyErr_ExceptionMatches(PyExc_Exception)) return NULL;
        PyErr_Clear();
    }
    if (begun && self->undo != Py_None) {
        PyObject *undone = PyObject_CallNoArgs(self->undo);
        if (!undone) return NULL;
        Py_DECREF(undone);
    }
    return PyObject_CallObject(self->otherwise, given);
}

static PyObject *program_call(PyObject *object, PyObject *given, PyObject *named)
{
    Program *self = (Program *)object;
    if (named || PyTuple_Size(given) != self->given) return mistake("not so many arguments"), NULL;
    if (self->running) return PyObject_CallObject(self->otherwise, given);
    self->running = 1;
    PyObject *results = run_alone(self, given);
    self->running = 0;
    return results;
}

/* What an exception is, with its traceback; None where there is none. */
static PyObject *taken_exception(void)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (!type) Py_RETURN_NONE;
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback) PyException_SetTraceback(value, traceback);
    Py_XDECREF(traceback);
    Py_DECREF(type);
    return value;
}

/* `rounds(most, object, name, arguments)`: run a program again and again, as long as an attribute is
 * None. Returns how many runs came to their end, what the last of them returned, and
 * the exception that ended the next one, or None. */
static PyObject *program_rounds(PyObject *object, PyObject *arguments)
{
    Py_ssize_t most, done = 0;
    PyObject *owner, *name, *given, *left = NULL, *made;
    if (!PyArg_ParseTuple(arguments, "nOOO!", &most, &owner, &name, &PyTuple_Type, &given)) return NULL;
    while (done < most && (made = program_call(object, given, NULL))) {
        Py_XDECREF(left);
        left = made;
        done++;
        PyObject *found = PyObject_GetAttr(owner, name);
        Py_XDECREF(found);
        if (found != Py_None) break;
    }
    if (!left) Py_INCREF(left = Py_None);
    return Py_BuildValue("nNN", done, left, taken_exception());
}

/* --- making one ------------------------------------------------------------------------------- */

/* Where a pointer leads into memory, note that it is to lead into other memory by turns. */
static int note_turn(Program *self, char **pointer, const Py_buffer *view, Py_ssize_t apart)
{
    const char *begin = view->buf;
    if (!*pointer || *pointer < begin || *pointer >= begin + view->len) return 0;
    Turn *turns = PyMem_Realloc(self->turns, (size_t)(self->turning + 1) * sizeof *turns);
    if (!turns) return PyErr_NoMemory(), -1;
    self->turns = turns;
    turns[self->turning++] = (Turn){pointer, apart};
    return 0;
}

static int note_turns(Program *self, Step *step, const Py_buffer *view, Py_ssize_t apart)
{
    int failed = 0;
    if (step->kind == KERNEL_CALL) {
        for (int k = 0; k < step->operands && !failed; k++)
            failed = note_turn(self, (char **)&step->arguments[k].data, view, apart) < 0 ||
                     note_turn(self, (char **)&step->numbers[k], view, apart) < 0;
        return failed ? -1 : 0;
    }
    for (int k = 0; k < MOST_OPERANDS && !failed; k++)
        failed = note_turn(self, &step->pointers[k], view, apart) < 0;
    for (int k = 0; step->links && k < step->operands && !failed; k++)
        failed = note_turns(self, &step->links[k], view, apart) < 0;
    return failed ? -1 : 0;
}

/* Take an output: two arrays that lie alike without gaps, or three of one shape. */
static int take_output(Program *self, Py_ssize_t number, PyObject *output)
{
    if (!PyTuple_Check(output)) return 0;
    PyObject *first = PyTuple_GetItem(output, 0), *last = PyTuple_GetItem(output, PyTuple_Size(output) - 1);
    Step *copies = &self->out[2 * number];
    Py_buffer one, other;
    if (PyTuple_Size(output) == 3)
        return take_kept(copies, NULL, first, PyTuple_GetItem(output, 1)) < 0 ||
                       take_kept(copies + 1, NULL, first, last) < 0
                   ? -1
                   : 0;
    if (PyTuple_Size(output) != 2) return mistake("not two arrays, or three");
    if (take_kept(copies, NULL, first, last) < 0 || look(first, &one, 1) < 0) return -1;
    int failed = look(last, &other, 1) < 0;
    if (failed) return PyBuffer_Release(&one), -1;
    for (int d = 0; d < one.ndim; d++) failed = failed || one.strides[d] != other.strides[d];
    if (failed || copies->kind != COPY || !PyBuffer_IsContiguous(&one, 'A'))
        failed = mistake("arrays that lie otherwise") < 0;
    for (Py_ssize_t k = 0; k < self->count && !failed; k++)
        failed = note_turns(self, &self->steps[k], &one, (char *)other.buf - (char *)one.buf) < 0;
    PyBuffer_Release(&one);
    PyBuffer_Release(&other);
    return failed ? -1 : 0;
}

static int program_clear(PyObject *object)
{
    Program *self = (Program *)object;
    for (Py_ssize_t k = 0; self->steps && k < self->count; k++) {
        PyMem_Free(self->steps[k].arguments);
        PyMem_Free(self->steps[k].numbers);
        PyMem_Free(self->steps[k].links);
        PyMem_Free(self->steps[k].around);
    }
    for (Py_ssize_t k = 0; self->into && k < PyTuple_Size(self->targets); k++) PyMem_Free(self->into[k].around);
    for (Py_ssize_t k = 0; self->out && k < 2 * PyTuple_Size(self->outputs); k++) PyMem_Free(self->out[k].around);
    PyMem_Free(self->into);
    PyMem_Free(self->out);
    PyMem_Free(self->formats);
    PyMem_Free(self->turns);
    self->turns = NULL;
    self->turning = 0;
    self->formats = NULL;
    PyMem_Free(self->steps);
    self->into = self->out = NULL;
    self->steps = NULL;
    self->count = self->given = 0;
    Py_CLEAR(self->held);
    Py_CLEAR(self->outputs);
    Py_CLEAR(self->otherwise);
    Py_CLEAR(self->undo);
    Py_CLEAR(self->targets);
    return 0;
}

static int program_traverse(PyObject *object, visitproc visit, void *arg)
{
    Program *self = (Program *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->held);
    Py_VISIT(self->outputs);
    Py_VISIT(self->otherwise);
    Py_VISIT(self->undo);
    Py_VISIT(self->targets);
    return 0;
}

static void program_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    program_clear(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

/* Hold an object as long as a program lives: of an array that another one has the memory of, that one.
 * A description, with views by the thousands, may go then. */
static int hold(Program *self, PyObject *object)
{
    PyObject *base;
    Py_INCREF(object);
    while ((base = PyObject_GetAttrString(object, "base")) && Py_TYPE(base) == Py_TYPE(object)) {
        Py_DECREF(object);
        object = base;
    }
    Py_XDECREF(base);
    PyErr_Clear();
    PyObject *key = PyLong_FromVoidPtr(object);
    int failed = !key || PyDict_SetItem(self->held, key, object) < 0;
    Py_XDECREF(key);
    Py_DECREF(object);
    return failed ? -1 : 0;
}

/* Hold what a step uses of its description: all of it, but where it computes with arrays alone. */
static int hold_used(Program *self, const Step *step, PyObject *described)
{
    static const StepKind COMPUTE[] = {LOOP, CHAIN, KERNEL_CALL, COPY, CAST, TAKE, PICK, PLACE, ADD};
    int computes = 0, failed = 0;
    for (size_t k = 0; k < sizeof COMPUTE / sizeof *COMPUTE; k++) computes = computes || step->kind == COMPUTE[k];
    if (!computes) return hold(self, described);
    for (Py_ssize_t k = 1; k < PyTuple_Size(described) && !failed; k++) {
        PyObject *part = PyTuple_GetItem(described, k);
        if (PyTuple_Check(part)) failed = hold_used(self, step, part) < 0; /* a loop of a chain */
        else if (!PyLong_Check(part) && !PyFloat_Check(part)) failed = hold(self, part) < 0;
    }
    return failed ? -1 : 0;
}

/* Take steps one after another: each is let go before the next one is asked for. */
static int take_steps(Program *self, PyObject *described)
{
    PyObject *steps = PyObject_GetIter(described), *each = NULL;
    Py_ssize_t room = 0;
    int failed = !steps;
    while (!failed && (each = PyIter_Next(steps))) {
        if (self->count == room) {
            Step *more = PyMem_Realloc(self->steps, (size_t)(room = 2 * room + 16) * sizeof *more);
            if (!more) failed = (PyErr_NoMemory(), 1);
            else self->steps = more;
        }
        if (!failed) {
            Step *step = memset(&self->steps[self->count++], 0, sizeof *step);
            failed = take_kept(step, each, NULL, NULL) < 0 || hold_used(self, step, each) < 0;
        }
        Py_DECREF(each);
    }
    Py_XDECREF(steps);
    Step *fitting = self->count ? PyMem_Realloc(self->steps, (size_t)self->count * sizeof *fitting) : NULL;
    if (fitting) self->steps = fitting;
    return failed || PyErr_Occurred() ? -1 : 0;
}

static PyObject *program_new(PyTypeObject *type, PyObject *arguments, PyObject *named)
{
    PyObject *steps, *targets, *outputs, *otherwise, *undo = Py_None;
    if (named && PyDict_Size(named)) return mistake("no keywords"), NULL;
    if (!PyArg_ParseTuple(arguments, "OO!O!O|O", &steps, &PyTuple_Type, &targets, &PyTuple_Type,
                          &outputs, &otherwise, &undo))
        return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Program *self = (Program *)allocate(type, 0);
    if (!self) return NULL;
    self->held = PyDict_New();
    Py_INCREF(self->targets = targets);
    Py_INCREF(self->outputs = outputs);
    Py_INCREF(self->otherwise = otherwise);
    Py_INCREF(self->undo = undo);
    Py_ssize_t given = PyTuple_Size(targets), left = PyTuple_Size(outputs);
    self->into = PyMem_Calloc((size_t)given + 1, sizeof *self->into);
    self->formats = PyMem_Calloc((size_t)given + 1, sizeof *self->formats);
    self->out = PyMem_Calloc(2 * (size_t)left + 1, sizeof *self->out);
    int failed = !self->held || !self->into || !self->out || !self->formats;
    if (failed) PyErr_NoMemory();
    failed = failed || take_steps(self, steps) < 0;
    for (Py_ssize_t k = 0; k < given && !failed; k++) {
        PyObject *target = PyTuple_GetItem(targets, k);
        Py_buffer view;
        failed = take_kept(&self->into[k], NULL, target, target) < 0 || look(target, &view, 0) < 0;
        if (failed) break;
        strncpy(self->formats[k], view.format, sizeof *self->formats - 1);
        PyBuffer_Release(&view);
        self->given = k + 1;
    }
    for (Py_ssize_t k = 0; k < left && !failed; k++)
        failed = take_output(self, k, PyTuple_GetItem(outputs, k)) < 0;
    if (failed) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static PyMethodDef program_methods[] = {
    {"rounds", program_rounds, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot program_slots[] = {
    {Py_tp_methods, program_methods},
    {Py_tp_new, program_new},
    {Py_tp_call, program_call},
    {Py_tp_dealloc, program_dealloc},
    {Py_tp_traverse, program_traverse},
    {Py_tp_clear, program_clear},
    {Py_tp_doc, "Program(steps, targets, outputs, otherwise, undo=None): a flat program; see program.h"},
    {0, NULL},
};

static PyType_Spec program_spec = {
    "gradcli.arrays.native._core.Program", sizeof(Program), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, program_slots,
};
