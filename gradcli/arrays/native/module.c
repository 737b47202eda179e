/* The extension module `gradcli.arrays.native._core`: kernels of arrays, as functions of buffers.
 *
 * Every kernel takes what its signature in kernels.def says, a letter an argument:
 *   f d i u h b the elements of an array without gaps that is read: float32, float64, int64, uint32,
 *               uint16 or float16, bytes; a capital letter for one that is written to
 *   o P Q       as `f`, `F` and `D`, or None
 *   n x         an integer, a float
 * The types are checked here and the sizes by the kernel, before it touches an element; a mistake
 * raises ValueError. Kernels run without the interpreter's lock where they have much to do. */

#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "core.h"

/* The nodes of programs, which are linked into this library (`language/native/node.c`). */
extern HIDDEN int add_nodes(PyObject *module);

enum { MOST_ARGUMENTS = 16 };

const char NO_MEMORY[] = "no memory";

/* --- levels: the kernels compiled for what processors have ------------------------------------ */

#ifdef HAS_FMA
enum { ALWAYS_FUSED = 1 };
#else
enum { ALWAYS_FUSED = 0 };
#endif

#ifdef HAS_LEVELS
#define LEVELS(name) {name##_baseline, name##_avx2, name##_avx512}
#define DEFINE(name, signature, fused) \
    HIDDEN extern const char *name##_baseline(const Argument *a), \
        *name##_avx2(const Argument *a), *name##_avx512(const Argument *a);
#else
#define LEVELS(name) {name##_baseline, name##_baseline, name##_baseline}
#define DEFINE(name, signature, fused) \
    HIDDEN extern const char *name##_baseline(const Argument *a);
#endif
#include "kernels.def"
#undef DEFINE

static const char *const NAMES[] = {"baseline", "avx2", "avx512"};

static int highest_level(void)
{
#ifdef HAS_LEVELS
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("bmi2"))
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") ? 2 : 1;
#endif
    return 0;
}

static int level;

/* --- calls ------------------------------------------------------------------------------------ */

enum { MUCH = 1 << 14 }; /* bytes from which on the lock is given away */

/* Whether a buffer has elements of the kind that a letter of a signature asks for. */
static int is_of_kind(const Py_buffer *view, char letter)
{
    const char *format = view->format;
    char found = format[0] && !format[1] ? format[0] : 0;
    switch (letter) {
    case 'f': return found == 'f' && view->itemsize == 4;
    case 'd': return found == 'd' && view->itemsize == 8;
    case 'i': return (found == 'l' || found == 'q') && view->itemsize == 8;
    case 'u': return (found == 'I' || found == 'L') && view->itemsize == 4;
    case 'h': return (found == 'H' || found == 'e') && view->itemsize == 2;
    default: return view->itemsize == 1;
    }
}

/* Take one argument; returns 1 where it holds a buffer, -1 with an exception set. */
static int take(PyObject *given, char letter, Argument *taken, Py_buffer *view)
{
    taken->data = NULL;
    taken->size = 0;
    taken->number = 0;
    if (letter == 'n') {
        taken->size = PyLong_AsLongLong(given);
        return taken->size == -1 && PyErr_Occurred() ? -1 : 0;
    }
    if (letter == 'x') {
        taken->number = PyFloat_AsDouble(given);
        return taken->number == -1.0 && PyErr_Occurred() ? -1 : 0;
    }
    if (letter == 'o' || letter == 'P' || letter == 'Q') {
        if (given == Py_None) return 0;
        letter = letter == 'o' ? 'f' : letter == 'P' ? 'F' : 'D';
    }
    char kind = letter;
    int flags = PyBUF_ND | PyBUF_FORMAT;
    if (letter < 'a') {
        flags |= PyBUF_WRITABLE;
        kind = (char)(letter - 'A' + 'a');
    }
    if (PyObject_GetBuffer(given, view, flags) < 0) return -1;
    if (!is_of_kind(view, kind) || (uintptr_t)view->buf % (size_t)view->itemsize) {
        PyErr_Format(PyExc_ValueError, "elements of kind '%s', not '%c'", view->format, letter);
        PyBuffer_Release(view);
        return -1;
    }
    taken->data = view->buf;
    taken->size = view->len / view->itemsize;
    return 1;
}

static PyObject *call(const char *signature, const Kernel *kernels, PyObject *const *given,
                      Py_ssize_t count)
{
    Argument taken[MOST_ARGUMENTS];
    Py_buffer views[MOST_ARGUMENTS];
    int held = 0, failed = 0;
    int64_t bytes = 0;
    if (count != (Py_ssize_t)strlen(signature)) {
        PyErr_Format(PyExc_ValueError, "%zd arguments for '%s'", count, signature);
        return NULL;
    }
    for (Py_ssize_t k = 0; k < count && !failed; k++) {
        int found = take(given[k], signature[k], &taken[k], &views[held]);
        failed = found < 0;
        if (found > 0) bytes += views[held++].len;
    }
    if (!failed) {
        const char *wrong;
        if (bytes < MUCH) {
            wrong = kernels[level](taken);
        } else {
            PyThreadState *state = PyEval_SaveThread();
            wrong = kernels[level](taken);
            PyEval_RestoreThread(state);
        }
        failed = wrong != NULL;
        if (wrong == NO_MEMORY) PyErr_NoMemory();
        else if (wrong) PyErr_SetString(PyExc_ValueError, wrong);
    }
    while (held) PyBuffer_Release(&views[--held]);
    if (failed) return NULL;
    Py_RETURN_NONE;
}

#define DEFINE(name, signature, fused)                                                          \
    static PyObject *call_##name(PyObject *self, PyObject *const *given, Py_ssize_t count)      \
    {                                                                                           \
        static const Kernel kernels[] = LEVELS(name);                                           \
        (void)self;                                                                             \
        return call(signature, kernels, given, count);                                          \
    }
#include "kernels.def"
#undef DEFINE

/* use(LEVEL): compute as on a processor that has no more; returns the name of the level in use. */
static PyObject *use(PyObject *self, PyObject *wanted)
{
    (void)self;
    int highest = highest_level();
    level = highest;
    for (int k = 0; k <= highest; k++)
        if (PyUnicode_Check(wanted) && PyUnicode_CompareWithASCIIString(wanted, NAMES[k]) == 0)
            level = k;
    return PyUnicode_FromString(NAMES[level]);
}

/* serves(NAME): whether a kernel is worth a call at the level in use. Without an instruction for it,
 * a fused multiply-add takes ten times as long. */
static PyObject *serves(PyObject *self, PyObject *wanted)
{
    int found = 0;
    (void)self;
    if (!PyUnicode_Check(wanted)) Py_RETURN_FALSE;
#define DEFINE(name, signature, fused)                                                          \
    if (PyUnicode_CompareWithASCIIString(wanted, #name) == 0)                                   \
        found = level > 0 || ALWAYS_FUSED || !fused;
#include "kernels.def"
#undef DEFINE
    return PyBool_FromLong(found);
}

#include "program.h"

static PyMethodDef methods[] = {
#define DEFINE(name, signature, fused)                                                                 \
    {#name, (PyCFunction)(void (*)(void))call_##name, METH_FASTCALL, #name "(" signature ")"},
#include "kernels.def"
#undef DEFINE
    {"use", use, METH_O, "use(level): the highest level to use; returns the one in use"},
    {"serves", serves, METH_O, "serves(name): whether a kernel is worth a call at the level in use"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_core", "Kernels of arrays.", 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__core(void)
{
    level = highest_level();
    PyObject *module = PyModule_Create(&definition), *type = PyType_FromSpec(&program_spec);
    if (!module || !type || PyModule_AddObjectRef(module, "Program", type) < 0) Py_CLEAR(module);
    Py_XDECREF(type);
    if (module && add_nodes(module) < 0) Py_CLEAR(module);
    return module;
}
