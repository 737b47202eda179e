/* Cuts what most texts are made of into tokens: words, numbers, operators, brackets and short strings in
 * ASCII. What else there is, the lexer in Python reads by its pattern (`parser/lexer.py`), which
 * would read these just so. */

#include "node.h"

#include <ctype.h>

static const char *const OPERATORS[] = {
    "**=", "//=", "<<=", ">>=", "...", "**", "//", "<<", ">>", "->", ":=", "!=", "-=", "+=", "*=", "/=", "%=", "@=",
    "&=",  "|=",  "^=",  "<=",  ">=",  "==", "-",  "+",  "*",  "/",  "%",  "@",  "&",  "|",  "^",  "<",  ">",  "=",
    ",",   ":",   ".",   ";",   "~",
};
enum { MANY = sizeof OPERATORS / sizeof *OPERATORS };

/* What is scanned, and the lists that tokens are put into: `Lexer` says what they are. */
typedef struct {
    const char *text;
    Py_ssize_t at, end;
    PyObject *kinds, *texts, *starts, *ends, *brackets, *keywords;
} Scan;

static int is_word(char each)
{
    return isalnum((unsigned char)each) || each == '_';
}

/* Put a token at the end of all lists, up to `end`; 1, or -1 with an exception set. The text is given. */
static int add(Scan *self, PyObject *kind, PyObject *text, Py_ssize_t end)
{
    PyObject *begins = text ? PyLong_FromSsize_t(self->at) : NULL, *ends = begins ? PyLong_FromSsize_t(end) : NULL;
    int failed = !ends || PyList_Append(self->kinds, kind) < 0 || PyList_Append(self->texts, text) < 0 ||
                 PyList_Append(self->starts, begins) < 0 || PyList_Append(self->ends, ends) < 0;
    Py_XDECREF(text);
    Py_XDECREF(begins);
    Py_XDECREF(ends);
    self->at = end;
    return failed ? -1 : 1;
}

static PyObject *text_of(const Scan *self, Py_ssize_t end)
{
    return PyUnicode_FromStringAndSize(self->text + self->at, end - self->at);
}

/* Each of what follows reads a token of its kind: 1, 0 where the pattern is to read it, -1 with an
 * exception set. */

static int word(Scan *self)
{
    static PyObject *name;
    Py_ssize_t end = self->at;
    while (end < self->end && is_word(self->text[end])) end++;
    if (end < self->end && (self->text[end] == '"' || self->text[end] == '\'')) return 0;
    if (!name && !(name = PyUnicode_InternFromString("NAME"))) return -1;
    PyObject *text = text_of(self, end);
    if (!text) return -1;
    PyUnicode_InternInPlace(&text);
    int is_keyword = PySet_Contains(self->keywords, text);
    return add(self, is_keyword ? text : name, text, end);
}

/* How far digits go. */
static Py_ssize_t digits(const Scan *self, Py_ssize_t at)
{
    while (at < self->end && isdigit((unsigned char)self->text[at])) at++;
    return at;
}

/* A number as most are written; one with `_`, a base or a `j`, or right before a word, is for the pattern. */
static int number(Scan *self)
{
    static PyObject *kind;
    Py_ssize_t end = digits(self, self->at), sign;
    if (end < self->end && self->text[end] == '.') end = digits(self, end + 1);
    if (end < self->end && (self->text[end] == 'e' || self->text[end] == 'E')) {
        sign = end + 1 + (end + 1 < self->end && (self->text[end + 1] == '+' || self->text[end + 1] == '-'));
        end = digits(self, sign) > sign ? digits(self, sign) : end;
    }
    if (end < self->end && (is_word(self->text[end]) || self->text[end] == '.')) return 0;
    if (!kind && !(kind = PyUnicode_InternFromString("NUMBER"))) return -1;
    return add(self, kind, text_of(self, end), end);
}

/* A string in a line without a backslash. */
static int string(Scan *self)
{
    static PyObject *kind;
    char quote = self->text[self->at];
    Py_ssize_t end = self->at + 1;
    while (end < self->end && self->text[end] != quote && self->text[end] != '\\' && self->text[end] != '\n') end++;
    if (end >= self->end || self->text[end] != quote) return 0;
    if (end == self->at + 1 && end + 1 < self->end && self->text[end + 1] == quote) return 0;
    if (!kind && !(kind = PyUnicode_InternFromString("STRING"))) return -1;
    return add(self, kind, text_of(self, end + 1), end + 1);
}

static int operator(Scan *self)
{
    static PyObject *known[MANY];
    Py_ssize_t left = self->end - self->at;
    for (int k = 0; k < MANY; k++) {
        const char *each = OPERATORS[k];
        if (*each != self->text[self->at]) continue;
        Py_ssize_t length = (Py_ssize_t)strlen(each);
        if (length > left || memcmp(each, self->text + self->at, (size_t)length)) continue;
        if (!known[k] && !(known[k] = PyUnicode_InternFromString(each))) return -1;
        return add(self, known[k], Py_NewRef(known[k]), self->at + length);
    }
    return 0;
}

/* A bracket, unless it is one too many, or closes none of its kind, or not the last before something
 * else than a bracket. */
static int bracket(Scan *self)
{
    enum { MOST = 200 };
    static const char closes[] = "()[]{}";
    const char *found = strchr(closes, self->text[self->at]);
    Py_ssize_t count = PyList_Size(self->brackets), which = found - closes;
    PyObject *text;
    if (which % 2) {
        PyObject *last = count ? PyList_GetItem(self->brackets, count - 1) : NULL;
        PyObject *around = count > 1 ? PyList_GetItem(self->brackets, count - 2) : NULL;
        if (!last || PyUnicode_ReadChar(last, 0) != (Py_UCS4)closes[which - 1] || PyUnicode_GetLength(last) > 1)
            return 0;
        if (around && PyUnicode_GetLength(around) > 1) return 0;
        if (PyList_SetSlice(self->brackets, count - 1, count, NULL) < 0) return -1;
    } else if (count >= MOST) {
        return 0;
    }
    if (!(text = text_of(self, self->at + 1))) return -1;
    PyUnicode_InternInPlace(&text);
    if (which % 2 == 0 && PyList_Append(self->brackets, text) < 0) {
        Py_DECREF(text);
        return -1;
    }
    return add(self, text, text, self->at + 1);
}

/* The next token, as above; 0 at the end of the line too. */
static int token(Scan *self)
{
    char first;
    for (;; self->at++) {
        if (self->at == self->end) return 0;
        first = self->text[self->at];
        if (first == '#')
            while (self->at + 1 < self->end && self->text[self->at + 1] != '\n') self->at++;
        else if (first != ' ' && first != '\t' && first != '\f' && !(first == '\n' && PyList_Size(self->brackets)))
            break;
    }
    if (isdigit((unsigned char)first)) return number(self);
    if (first == '.' && self->at + 1 < self->end && isdigit((unsigned char)self->text[self->at + 1]))
        return number(self);
    if (is_word(first)) return word(self);
    if (first == '"' || first == '\'') return string(self);
    return strchr("()[]{}", first) && first ? bracket(self) : operator(self);
}

/* scan(text, position, kinds, texts, starts, ends, brackets, keywords): puts tokens into the lists, up to
 * the end of the line or what the pattern is to read, where it returns. */
PyObject *scan(PyObject *module, PyObject *const *given, Py_ssize_t count)
{
    Scan self = {.text = NULL};
    int more = 1;
    (void)module;
    if (count != 8) {
        PyErr_SetString(PyExc_TypeError, "a text, a position, and what tokens are put into");
        return NULL;
    }
    self = (Scan){NULL,     PyLong_AsSsize_t(given[1]), 0,        given[2], given[3],
                  given[4], given[5],                   given[6], given[7]};
    if (!(self.text = PyUnicode_AsUTF8AndSize(given[0], &self.end))) return NULL;
    while (more > 0) more = token(&self);
    return more < 0 ? NULL : PyLong_FromSsize_t(self.at);
}
